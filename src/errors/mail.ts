/** Refusals about e-mail. */
import { EXIT, entry } from './definition.ts';

export const MAIL = {
  sending_unfinished: entry<{ number: string; status: string; reason: string }>(
    EXIT.refused,
    (f) =>
      `The e-mail of ${f.number} has not gone out yet: it is ${f.status}${f.reason === '' ? '' : ` (${f.reason})`}. ` +
      `Supply what it lacks, then run 'reckoner deliver'; send again once it was sent, failed or uncertain.`,
  ),
  recipient_refused: entry<{ address: string }>(
    EXIT.refused,
    (f) => `Sandbox mail goes only to sandbox_recipients in settings.json, and ${f.address} is not among them.`,
  ),
} as const;
