/**
 * The letters to the auditor about checkpoints: one a month, for the checkpoint that closes it, or one for every
 * checkpoint.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DateTime } from 'luxon';
import { booksDueOn, openBooks } from '#close/books';
import { readBooksState } from '#close/books.sql';
import { endOfMonthEverywhere, nextToClose } from '#close/close';
import { readLedgerState, readPartnerZones } from '#close/months.sql';
import { Transaction } from '#database/transaction';
import { isSignedBy, noteOf, vkeyOf } from '#log/note';
import { readLatestKey, readSignatureLines } from '#log/signatures.sql';
import { checkpointTitle, closedBy, factsOf } from '#log/text';
import { EmailComposer, letterView } from '#mail/email';
import { queueEmails } from '#mail/outbox.sql';
import { packageRoot } from '#package';
import { ActorContext } from '#people/audit-events';
import { counted, Month, moneyText, monthName, plural } from '#values';
import {
  LetterHead,
  readBooksClosed,
  readKeys,
  readLetterBefore,
  readLetterHead,
  readLettersDue,
  readMonthCounts,
} from './checkpoint.sql.ts';

const VERIFIERS = join(packageRoot, 'templates', 'export');

/** Auditors compare these hashes before they run a copy of a verifier. */
const verifiers = () =>
  readdirSync(VERIFIERS)
    .filter((file) => /^(?:verify\.\w+|checks\.sql)$/.test(file))
    .sort()
    .map((file) => ({
      file,
      sha256: createHash('sha256')
        .update(readFileSync(join(VERIFIERS, file)))
        .digest('hex'),
    }));

export const checkpointEmail: EmailComposer = {
  kind: 'checkpoint',
  queueDue,
  async compose(tx, { checkpoint_size }, context, templates) {
    const { settings } = context;
    if (settings.auditor_email === '') return { held: 'settings.json has no auditor_email' };
    const head = await readLetterHead(tx, { size: checkpoint_size });
    const before = await readLetterBefore(tx, { size: head.size, signed: false });
    const lines = (await readSignatureLines(tx, [head.size])).get(head.size) ?? [];
    const note = noteOf(head, lines);
    return {
      to: { name: 'Auditor', address: settings.auditor_email },
      cc: [],
      content: templates.render('checkpoint', {
        ...letterView(context),
        about: closedBy(head.closes) ?? dayOf(head.taken_at, settings.time_zone),
        closes: closedBy(head.closes) ?? '',
        ...viewOf(head),
        month: await monthView(tx, head),
        books: (await readBooksClosed(tx, { after: before?.size ?? 0, to: head.size })).map((each) => ({
          ...{ title: closedBy(each.closes), facts: factsOf(each), root: each.root },
        })),
        before: before === undefined ? [] : [{ title: checkpointTitle(before), root: viewOf(before).root }],
        due: await readDueLetters(tx, context, head.taken_at),
        verifiers: verifiers(),
        ...(await keyView(tx, head, lines)),
        note: note.trimEnd(),
      }),
      attachments: [
        // Mail programs do not wrap the lines of a file.
        {
          filename: `checkpoint-${head.size}.note.txt`,
          contentType: 'text/plain; charset=utf-8',
          content: Buffer.from(note),
        },
      ],
      date: head.taken_at,
    };
  },
};

const dayOf = (instant: string, zone: string) => DateTime.fromISO(instant, { zone }).toFormat('yyyy-MM-dd');

const viewOf = (head: Pick<LetterHead, 'size' | 'root'>) => ({
  facts: factsOf(head),
  root: head.root.toString('base64'),
});

/**
 * The counts and totals of the month that the checkpoint closes, as a list with one entry. Empty if the checkpoint
 * closes no month.
 */
async function monthView(tx: Transaction, { closes }: LetterHead) {
  const [what, month] = (closes?.split(' ') ?? []) as [string?, Month?];
  if (what !== 'month' || month === undefined) return [];
  const { entries, late_entries, partners_with_documents, totals } = await readMonthCounts(tx, { month });
  return [
    {
      ...{ rows: counted(entries), lateRows: counted(late_entries), partners: counted(partners_with_documents) },
      totals: totals.map(({ currency, ...sums }) => ({
        ...{ currency, rows: plural(sums.entries, 'row'), sales: moneyText(sums.spot_price, currency) },
        ...{
          partnerCut: moneyText(sums.partner_cut, currency),
          invoiced: moneyText(sums.invoice_amount, currency),
        },
      })),
    },
  ];
}

/** The last signed letter tells whether the key is new to the auditor. */
async function keyView(tx: Transaction, head: LetterHead, lines: readonly string[]) {
  const keys = await readKeys(tx);
  const signer = (of: LetterHead, signatures: readonly string[]) =>
    keys.find(({ public_key }) =>
      isSignedBy(of, signatures, { name: of.origin, publicKey: Buffer.from(public_key, 'base64') }),
    );
  const key = signer(head, lines);
  if (key === undefined) {
    return { vkey: '', firstKey: false, newKey: false, keyLost: '', unsigned: keys.length > 0 };
  }
  const before = await readLetterBefore(tx, { size: head.size, signed: true });
  const known = before && signer(before, (await readSignatureLines(tx, [before.size])).get(before.size) ?? []);
  const newKey = known !== undefined && known.public_key !== key.public_key;
  return {
    vkey: vkeyOf({ name: head.origin, publicKey: Buffer.from(key.public_key, 'base64') }),
    ...{ firstKey: known === undefined, newKey, unsigned: false },
    keyLost: newKey && key.signature === null ? key.reason : '',
  };
}

/** And the day by which each should arrive, in the issuer's time zone. */
async function readDueLetters(tx: Transaction, { settings }: Pick<ActorContext, 'settings'>, takenAt: string) {
  const { time_zone: zone } = settings;
  const every = settings.checkpoint_letters === 'every';
  const due: { what: string; day: string }[] = [];
  const dayAfter = (at: DateTime) => at.setZone(zone).plus({ days: 1 }).toFormat('yyyy-MM-dd');
  if (every) due.push({ what: 'the daily checkpoint', day: dayAfter(DateTime.fromISO(takenAt)) });
  const month = nextToClose(await readLedgerState(tx), undefined);
  const zones = await readPartnerZones(tx);
  if (month !== undefined && zones.length > 0) {
    due.push({ what: `the checkpoint of ${monthName(month)}`, day: dayAfter(endOfMonthEverywhere(month, zones).at) });
  }
  const [books] = every ? openBooks(await readBooksState(tx)) : [];
  const booksDue = books && booksDueOn(books, settings);
  if (books && booksDue) due.push({ what: `the checkpoint of the books of ${monthName(books)}`, day: booksDue });
  return due;
}

/**
 * If several checkpoints were taken before an address was set, only the latest gets a letter, because it covers the
 * others.
 */
const NEWS_FOR_DAYS = 7;

/** A checkpoint is normally signed within seconds. */
const SIGNED_WITHIN_HOURS = 1;

async function queueDue(tx: Transaction, { environment, settings }: ActorContext) {
  if (settings.auditor_email === '') return;
  const now = environment.now();
  const isSigning = environment.logKey !== undefined || (await readLatestKey(tx)) !== undefined;
  const due = await readLettersDue(tx, {
    every: settings.checkpoint_letters === 'every',
    since: now.minus({ days: NEWS_FOR_DAYS }).toISO(),
    unsignedBefore: isSigning ? now.minus({ hours: SIGNED_WITHIN_HOURS }).toISO() : null,
  });
  if (due.length === 0) return;
  const emails = due.map(({ size }) => ({
    ...{ kind: 'checkpoint' as const, checkpoint_size: size, name: `checkpoint.${size}` },
  }));
  await queueEmails(tx, emails, { environment, settings });
}
