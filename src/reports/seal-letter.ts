/**
 * The e-mail that tells the auditor a month's seal, on the day it is made. It is recorded with the seal and sent after:
 * a repetition has the same Message-ID and the same bytes, so that a copy that came twice is seen as one.
 */
import type { Environment } from '../config/environment.ts';
import type { Settings } from '../config/settings.ts';
import type { Database } from '../database/database.ts';
import { composeMessage, envelopeOf } from '../mail/message.ts';
import { type SendOutcome, sandboxAllows, transportOf } from '../mail/transport.ts';
import { type Month, monthName } from '../month.ts';
import { claimSealLetters, type SealLetter, settleSealLetter } from '../seals/queries.ts';

export interface MailedSeal {
  readonly month: Month;
  readonly outcome: SendOutcome['outcome'] | 'held';
  readonly reply: string;
}

export interface SealMailer {
  readonly environment: Environment;
  readonly settings: Settings;
  readonly database: Database;
}

/** Sends what has not gone out yet, and says what became of each. */
export async function mailSeals({ environment, settings, database }: SealMailer): Promise<MailedSeal[]> {
  const letters = await database.transaction((tx) => claimSealLetters(tx));
  if (letters.length === 0) return [];
  const mailed: MailedSeal[] = [];
  const transport = transportOf(environment);
  try {
    for (const letter of letters) {
      const { month } = letter;
      const lacks = whatLacks(environment, settings);
      let result: { outcome: MailedSeal['outcome']; reply: string };
      if (lacks !== undefined) result = { outcome: 'held', reply: lacks };
      else {
        const message = messageOf(letter, environment, settings);
        const raw = await composeMessage(message);
        result = await transport.send({ messageId: letter.message_id, envelope: envelopeOf(message), raw });
      }
      await database.transaction((tx) =>
        settleSealLetter(tx, {
          month,
          sent: result.outcome === 'sent',
          held: lacks !== undefined,
          recipient: settings.auditor_email,
          reply: result.reply,
          now: environment.now().toISO(),
        }),
      );
      mailed.push({ month, ...result });
    }
  } finally {
    transport.close();
  }
  return mailed;
}

function whatLacks(environment: Environment, { auditor_email, mail_from, sandbox_recipients }: Settings) {
  if (auditor_email === '' || mail_from === '') return 'settings.json has no auditor_email or no mail_from';
  if (environment.name === 'sandbox' && !sandboxAllows(auditor_email, sandbox_recipients)) {
    return `${auditor_email} is not among sandbox_recipients`;
  }
  return undefined;
}

function messageOf(
  { month, message_id, sealed_at, seal, record }: SealLetter,
  environment: Environment,
  settings: Settings,
) {
  const mark = environment.name === 'sandbox' ? '[SANDBOX] ' : '';
  const text = [
    `${monthName(month)} is closed and sealed. The seal is`,
    '',
    `  ${seal}`,
    '',
    'Keep this message. The seal is the SHA-256 of the record below, which has the hashes of all rows and of every',
    'fact recorded since the seal before. Whoever changes any of them later cannot keep this seal: compare it with the',
    "one in an export ('reckoner export', record.txt of the month), which a verifier of one file checks.",
    '',
    ...record.trimEnd().split('\n'),
    '',
  ].join('\n');
  return {
    messageId: message_id,
    date: sealed_at,
    from: { name: settings.issuer.legal_name, address: settings.mail_from },
    to: { name: 'Auditor', address: settings.auditor_email },
    cc: [],
    letter: {
      subject: `${mark}Seal of ${monthName(month)}: ${seal.slice(0, 16)}`,
      text,
      html: `<!doctype html><html lang="en"><body><pre>${escapeHtml(text)}</pre></body></html>`,
    },
    attachments: [],
  };
}

const escapeHtml = (text: string): string => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
