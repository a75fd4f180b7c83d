/** Refusals about e-mail. */
import { define, EXIT } from './definition.ts';

export const MAIL = {
  sending_unfinished: define<{ number: string; status: string; reason: string }>(
    EXIT.refused,
    (f) =>
      `The e-mail of ${f.number} has not been sent yet: it is ${f.status}${f.reason === '' ? '' : ` (${f.reason})`}. ` +
      "Supply what is missing and run 'reckoner deliver'. An e-mail can be resent once it is sent, failed or uncertain.",
  ),
  recipient_refused: define<{ address: string }>(
    EXIT.refused,
    (f) => `${f.address} is not in sandbox_recipients in settings.json. A sandbox sends mail only to those recipients.`,
  ),
} as const;
