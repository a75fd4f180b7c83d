/** The e-mails that tell the auditor the seal of a month, and later that of its books, on the day that each is made. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { query, queryOne, type Transaction } from '../../database/transaction.ts';
import { mailDomain } from '../../documents/issue/context.ts';
import type { EmailComposer, EmailContext } from '../../mail/email.ts';
import { issuerView } from '../../mail/issuer-view.ts';
import type { Attachment } from '../../mail/message.ts';
import { queueEmails } from '../../mail/queries.ts';
import { type Month, monthName } from '../../month.ts';
import { packageRoot } from '../../package.ts';
import type { Seal } from '../../seals/queries.ts';
import { noteOf, readSignature, type SealKind, vkeyOf } from '../../seals/signature.ts';

/** The seals of one kind: both queries give the month and what was sealed. */
interface Seals {
  readonly kind: 'seal' | 'books_seal';
  readonly of: SealKind;
  /** What the Message-ID begins with. */
  readonly name: string;
  /** The seal of `:month`. */
  readonly read: string;
  /** Those made since `:since` and the latest, without those that an e-mail tells. */
  readonly untold: string;
}

/** The verifiers of this release: an auditor compares the hash of their own copy before they run it. */
const verifiers = (): readonly { readonly file: string; readonly sha256: string }[] =>
  ['verify.mjs', 'verify.py'].map((file) => ({
    file,
    sha256: createHash('sha256')
      .update(readFileSync(join(packageRoot, 'templates', 'export', file)))
      .digest('hex'),
  }));

/** The signed note, and what to say of its key. Without a signature the note is the record. */
export function noteView(record: string, signature: Awaited<ReturnType<typeof readSignature>>) {
  if (signature === undefined) return { note: record.trimEnd(), vkey: '', firstKey: false, newKey: false };
  const { previous_key: previous, public_key: key } = signature;
  return {
    note: noteOf(record, signature).trimEnd(),
    vkey: vkeyOf(signature),
    firstKey: previous === null,
    newKey: previous !== null && previous !== key,
  };
}

/** The note as a file, which no mail program wraps. */
export const noteFile = (filename: string, note: string): Attachment => ({
  ...{ filename, contentType: 'text/plain; charset=utf-8', content: Buffer.from(note) },
});

const sealEmailOf = (seals: Seals): EmailComposer => ({
  kind: seals.kind,
  queueDue: (tx, context) => queueDue(tx, context, seals),
  async compose(tx, { month }, { environment, settings }, templates) {
    if (settings.auditor_email === '') return { held: 'settings.json has no auditor_email' };
    const { seal, record, sealed_at } = await queryOne<Pick<Seal, 'seal' | 'record' | 'sealed_at'>>(tx, seals.read, {
      month,
    });
    const signature = await readSignature(tx, { kind: seals.of, name: month as Month });
    return {
      to: { name: 'Auditor', address: settings.auditor_email },
      cc: [],
      content: templates.render(seals.kind, {
        sandbox: environment.name === 'sandbox',
        issuer: issuerView(settings.issuer),
        ...{ month: monthName(month as Month), seal, shortSeal: seal.slice(0, 16), record: record.trimEnd() },
        ...noteView(record, signature),
        verifiers: verifiers(),
      }),
      attachments:
        signature === undefined ? [] : [noteFile(`${seals.name}-${month}.note.txt`, noteOf(record, signature))],
      date: sealed_at,
    };
  },
});

export const sealEmail = sealEmailOf({
  kind: 'seal',
  of: 'month',
  name: 'seal',
  read: `SELECT seal, record, sealed_at FROM seals WHERE month = :month`,
  untold: `SELECT month FROM seals s
     WHERE (sealed_at >= :since::timestamptz OR month = (SELECT max(month) FROM seals))
       AND NOT EXISTS (SELECT FROM emails e WHERE e.kind = 'seal' AND e.month = s.month) ORDER BY month`,
});

export const booksSealEmail = sealEmailOf({
  kind: 'books_seal',
  of: 'books',
  name: 'books-seal',
  read: `SELECT seal, record, closed_at AS sealed_at FROM book_closes WHERE month = :month`,
  untold: `SELECT month FROM book_closes s
     WHERE (closed_at >= :since::timestamptz OR month = (SELECT max(month) FROM book_closes))
       AND NOT EXISTS (SELECT FROM emails e WHERE e.kind = 'books_seal' AND e.month = s.month) ORDER BY month`,
});

/** A seal made this lately is mailed; of those made before there was an address, the latest alone, which binds them all. */
const NEWS_FOR_DAYS = 7;

async function queueDue(
  tx: Transaction,
  { environment, settings }: EmailContext,
  { kind, name, untold }: Seals,
): Promise<void> {
  if (settings.auditor_email === '') return;
  const now = environment.now();
  const months = await query<{ month: Month }>(tx, untold, { since: now.minus({ days: NEWS_FOR_DAYS }).toISO() });
  if (months.length === 0) return;
  const emails = months.map(({ month }) => ({ kind, month, name: `${name}.${month}` }));
  await queueEmails(tx, emails, { now: now.toISO(), eventId: null, mailDomain: mailDomain(settings) });
}
