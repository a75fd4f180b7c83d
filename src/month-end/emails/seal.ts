/**
 * The letters to the auditor. Each seal of a month, of a month's books, or of a checkpoint has a letter, sent on the
 * day of the seal.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DateTime } from 'luxon';
import { readBooksState } from '../../close/books.sql.ts';
import { booksDueOn, openBooks } from '../../close/books.ts';
import { endOfMonthEverywhere, nextToClose } from '../../close/close.ts';
import { readLedgerState, readPartnerZones } from '../../close/months.sql.ts';
import type { Transaction } from '../../database/transaction.ts';
import { mailDomain } from '../../documents/issue/context.ts';
import type { EmailComposer } from '../../mail/email.ts';
import { issuerView } from '../../mail/issuer-view.ts';
import type { Attachment } from '../../mail/message.ts';
import { queueEmails } from '../../mail/outbox.sql.ts';
import { monthName } from '../../month.ts';
import { packageRoot } from '../../package.ts';
import type { ActorContext } from '../../people/audit-events.ts';
import { noteOf, sealTitle, vkeyOf } from '../../seals/signature.ts';
import { readSignature, type SealKind } from '../../seals/signatures.sql.ts';
import { readPlace, readSealsToMail } from './due.sql.ts';

interface Seals {
  readonly kind: 'seal' | 'books_seal' | 'checkpoint';
  readonly of: SealKind;
  /** The beginning of the Message-ID. */
  readonly name: string;
}

/** The verifiers of this release. Auditors compare these hashes with the hashes of their own copies. */
const verifiers = (): readonly { readonly file: string; readonly sha256: string }[] =>
  ['verify.mjs', 'verify.py'].map((file) => ({
    file,
    sha256: createHash('sha256')
      .update(readFileSync(join(packageRoot, 'templates', 'export', file)))
      .digest('hex'),
  }));

/** The signed note and the state of its key. If there is no signature, the note is the seal record. */
function noteView(record: string, signature: Awaited<ReturnType<typeof readSignature>>) {
  if (signature === undefined) return { note: record.trimEnd(), vkey: '', firstKey: false, newKey: false };
  const { previous_key: previous, public_key: key } = signature;
  return {
    note: noteOf(record, signature).trimEnd(),
    vkey: vkeyOf(signature),
    firstKey: previous === null,
    newKey: previous !== null && previous !== key,
  };
}

/** The note as an attachment, because mail programs may wrap the text of an e-mail. */
const noteFile = (filename: string, note: string): Attachment => ({
  ...{ filename, contentType: 'text/plain; charset=utf-8', content: Buffer.from(note) },
});

const sealEmailOf = (seals: Seals): EmailComposer => ({
  kind: seals.kind,
  queueDue: (tx, context) => queueDue(tx, context, seals),
  async compose(tx, { month, checkpoint_number }, context, templates) {
    const { environment, settings } = context;
    if (settings.auditor_email === '') return { held: 'settings.json has no auditor_email' };
    const name = month ?? String(checkpoint_number);
    const { seal, record, sealed_at, before } = await readPlace(tx, { kind: seals.of, name });
    const signature = await readSignature(tx, { kind: seals.of, name });
    return {
      to: { name: 'Auditor', address: settings.auditor_email },
      cc: [],
      content: templates.render(seals.kind, {
        sandbox: environment.name === 'sandbox',
        issuer: issuerView(settings.issuer),
        ...{ seal, shortSeal: seal.slice(0, 16), record: record.trimEnd() },
        ...(month === null ? { number: name } : { month: monthName(month) }),
        ...noteView(record, signature),
        before: before === null ? [] : [{ title: sealTitle(before), seal: before.seal }],
        due: await readDueLetters(tx, context, sealed_at),
        verifiers: verifiers(),
      }),
      attachments:
        signature === undefined ? [] : [noteFile(`${seals.name}-${name}.note.txt`, noteOf(record, signature))],
      date: sealed_at,
    };
  },
});

/** The next letters, and the day by which each should arrive, in the issuer's time zone. */
async function readDueLetters(
  tx: Transaction,
  { settings }: Pick<ActorContext, 'settings'>,
  sealedAt: string,
): Promise<{ readonly what: string; readonly day: string }[]> {
  const zone = settings.time_zone;
  const due: { what: string; day: string }[] = [];
  const dayAfter = (at: DateTime) => at.setZone(zone).plus({ days: 1 }).toFormat('yyyy-MM-dd');
  if (settings.checkpoints === 'daily') due.push({ what: 'a checkpoint', day: dayAfter(DateTime.fromISO(sealedAt)) });
  const month = nextToClose(await readLedgerState(tx), undefined);
  const zones = await readPartnerZones(tx);
  if (month !== undefined && zones.length > 0) {
    due.push({ what: `the seal of ${monthName(month)}`, day: dayAfter(endOfMonthEverywhere(month, zones).at) });
  }
  const [books] = openBooks(await readBooksState(tx));
  const booksDue = books && booksDueOn(books, settings);
  if (books && booksDue) due.push({ what: `the seal of the books of ${monthName(books)}`, day: booksDue });
  return due;
}

export const sealEmail = sealEmailOf({
  kind: 'seal',
  of: 'month',
  name: 'seal',
});

export const booksSealEmail = sealEmailOf({
  kind: 'books_seal',
  of: 'books',
  name: 'books-seal',
});

export const checkpointEmail = sealEmailOf({
  kind: 'checkpoint',
  of: 'checkpoint',
  name: 'checkpoint',
});

/**
 * Seals that are older than a week are not mailed. If an auditor's address was set later, only the latest older seal is
 * mailed, because it covers the earlier ones.
 */
const NEWS_FOR_DAYS = 7;

async function queueDue(
  tx: Transaction,
  { environment, settings }: ActorContext,
  { kind, name }: Seals,
): Promise<void> {
  if (settings.auditor_email === '') return;
  const now = environment.now();
  const seals = await readSealsToMail(tx, kind, now.minus({ days: NEWS_FOR_DAYS }).toISO());
  if (seals.length === 0) return;
  const emails = seals.map((each) => ({
    kind,
    ...(kind === 'checkpoint' ? { checkpoint_number: Number(each.name) } : { month: each.name }),
    name: `${name}.${each.name}`,
  }));
  await queueEmails(tx, emails, { now: now.toISO(), eventId: null, mailDomain: mailDomain(settings) });
}
