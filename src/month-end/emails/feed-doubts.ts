/**
 * The e-mail to finance about the rows of the next month to close (`src/close/feeds.ts`): when two working days of the
 * month are left and something is missing, when the month has ended and stops, and when another doubt stops it.
 */
import { readNextFeeds } from '#close/close';
import { acceptFeed, Doubt, Feeds, isUndecided, lateFeeds, undecidedFeeds } from '#close/feeds';
import { publicAddress, Settings } from '#config/settings';
import { todayOf } from '#config/today';
import { lockLedgerShared } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { closeEmpty } from '#errors/close';
import { Finding } from '#findings/finding';
import { readDoubled, readHeld } from '#findings/rows';
import { EmailComposer, letterView } from '#mail/email';
import { queueEmails } from '#mail/outbox.sql';
import { dateName, lastDay, Month, monthAfter, monthName, workingDaysFrom } from '#month';
import { ActorContext, Installation } from '#people/audit-events';
import { actionAddress } from '#remedy';
import { readUntold, recordAttention } from '#reports/jobs.sql';

/** The console lists all. */
const LISTED = 50;

export const feedDoubtsEmail: EmailComposer = {
  kind: 'feed_doubts',
  queueDue,
  async compose(tx, { day }, context, templates) {
    const { settings } = context;
    const recipient = recipientOf(settings);
    if (recipient === undefined) return { held: 'settings.json has neither finance_email nor operations_email' };
    const told = await readToTell(tx, context);
    if (told === undefined || told.month !== (day ?? '').slice(0, 7)) {
      return { withdrawn: 'the month is closed, or nothing about it is in doubt now' };
    }
    const { month, due, doubts, empty, rows } = told;
    const count = new Set(doubts.map(({ partner_id }) => partner_id)).size + rows.length;
    const address = publicAddress(settings);
    return {
      to: recipient,
      cc: settings.operations_email === '' || settings.finance_email === '' ? [] : [settings.operations_email],
      content: templates.render('feed_doubts', {
        ...letterView(context),
        ...{ month: monthName(month), ended: due, empty, ends: dateName(lastDay(month)) },
        doubts: doubts.slice(0, LISTED).map((each) => ({
          ...{ id: each.partner_id, name: each.name, evidence: each.evidence, held: !each.stops },
          address: `${address}${actionAddress(acceptFeed(month, each))}`,
        })),
        rows: rows.map(({ reason, remedies }) => ({ reason, address: `${address}${pageOf(remedies)}` })),
        ...{ count: String(count), single: count === 1 },
        more: doubts.length > LISTED ? String(doubts.length - LISTED) : '',
        address: `${address}${empty && due ? actionAddress(closeEmpty(month)) : `/console/close/${month}`}`,
      }),
      attachments: [],
    };
  },
};

const recipientOf = ({ finance_email: finance, operations_email: operations }: Settings) =>
  finance !== ''
    ? { name: 'Finance', address: finance }
    : operations !== ''
      ? { name: 'Operations', address: operations }
      : undefined;

type ToTell = Readonly<{
  month: Month;
  /** Whether the month has ended everywhere. */
  due: boolean;
  empty: boolean;
  doubts: readonly Doubt[];
  /** Rows that may repeat others, by partner. */
  rows: readonly Finding[];
}>;

const pageOf = (remedies: Finding['remedies']) =>
  remedies.flatMap((each) => ('page' in each && each.page !== undefined ? [each.page] : []))[0] ?? '/console/queue';

/** What finance should hear about the next month to close. */
async function readToTell(tx: Transaction, context: Installation): Promise<ToTell | undefined> {
  const feeds = await readNextFeeds(tx, context);
  if (feeds === null) return undefined;
  const { month, due } = feeds;
  const open = undecidedFeeds(feeds);
  if (due) {
    if (!isUndecided(feeds)) return undefined;
    const held = feeds.doubts.filter(({ stops, accepted }) => !stops && !accepted);
    return { month, due, ...open, doubts: [...open.doubts, ...held], rows: await readRows(tx, context) };
  }
  if (todayOf(context) < whenTwoWorkingDaysAreLeft(month)) return undefined;
  const doubts = withoutUsual(feeds, open.doubts);
  const rows = await readRows(tx, context);
  return doubts.length + rows.length > 0 ? { month, due, empty: false, doubts, rows } : undefined;
}

async function readRows(tx: Transaction, { environment }: Installation) {
  const now = environment.now();
  const question = { scope: null, today: now.toISODate(), now: now.toMillis(), limit: LISTED };
  return [...(await readHeld(tx, question)), ...(await readDoubled(tx, question))];
}

/** Before the month ends, only the feeds that are later than usual. */
function withoutUsual(feeds: Feeds, doubts: readonly Doubt[]): Doubt[] {
  const late = new Set(lateFeeds(feeds).map(({ partner_id }) => partner_id));
  return doubts.filter(({ kind, partner_id }) => kind === 'totals' || kind === 'repeated' || late.has(partner_id));
}

/** The day on which two working days of a month are left, this day included. */
export const whenTwoWorkingDaysAreLeft = (month: Month) => workingDaysFrom(`${monthAfter(month)}-01`, -2);

async function queueDue(tx: Transaction, context: ActorContext) {
  const { environment, settings } = context;
  if (recipientOf(settings) === undefined) return;
  // No checkpoint is taken meanwhile, so the rows are counted once.
  await lockLedgerShared(tx);
  const told = await readToTell(tx, context);
  const now = environment.now();
  const items = told?.due
    ? [
        ...(told.empty ? ['empty'] : []),
        ...told.doubts.map(
          ({ partner_id, kind, accepted_before: before }) => `${partner_id} ${kind}${before === 0 ? '' : ` ${before}`}`,
        ),
      ]
    : [];
  const found = {
    ...{ job: 'e-mail of doubts', items: items.map((item) => ({ item: `${told?.month} ${item}`, count: 1 })) },
    ...{ now: now.toISO(), againAfterHours: NEVER_HOURS },
  };
  const untold = await readUntold(tx, found);
  await recordAttention(tx, found);
  if (told === undefined || (told.due && untold.length === 0)) return;
  // The e-mail must stay valid after the month is closed, so the e-mail names the month by its first day.
  const occasion = told.due ? now.toUTC().toFormat("yyyyMMdd'T'HHmmss") : 'before-its-end';
  const email = {
    kind: 'feed_doubts',
    day: `${told.month}-01`,
    name: `feed-doubts.${told.month}.${occasion}`,
  } as const;
  await queueEmails(tx, [email], context);
}

/** An e-mail reports a doubt only once. */
const NEVER_HOURS = 100 * 366 * 24;
