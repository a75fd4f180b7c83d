/**
 * The e-mail to finance that a month has ended and waits for feeds (`src/close/feeds.ts`), sent once for each month.
 */
import { readNextFeeds } from '../../close/close.ts';
import { closeAnyway, type Feeds, isIncomplete, missingFeeds } from '../../close/feeds.ts';
import { publicAddress, type Settings } from '../../config/settings.ts';
import type { Transaction } from '../../database/transaction.ts';
import { mailDomain } from '../../documents/issue/context.ts';
import type { EmailComposer } from '../../mail/email.ts';
import { issuerView } from '../../mail/issuer-view.ts';
import { queueEmails } from '../../mail/outbox.sql.ts';
import { monthName } from '../../month.ts';
import type { ActorContext } from '../../people/audit-events.ts';
import { actionAddress } from '../../remedy.ts';
import { readMissingFeedsEmails } from './due.sql.ts';

export const missingFeedsEmail: EmailComposer = {
  kind: 'missing_feeds',
  queueDue,
  async compose(tx, { day }, context, templates) {
    const { environment, settings } = context;
    const recipient = recipientOf(settings);
    if (recipient === undefined) return { held: 'settings.json has neither finance_email nor operations_email' };
    const feeds = await readWaiting(tx, context);
    if (feeds === undefined || feeds.month !== monthOf(day)) {
      return { withdrawn: 'the month is closed or complete now' };
    }
    const missing = missingFeeds(feeds);
    return {
      to: recipient,
      cc: settings.operations_email === '' || settings.finance_email === '' ? [] : [settings.operations_email],
      content: templates.render('missing_feeds', {
        sandbox: environment.name === 'sandbox',
        issuer: issuerView(settings.issuer),
        month: monthName(feeds.month),
        partners: missing.map(({ partner_id, name }) => ({ id: partner_id, name })),
        count: String(missing.length),
        ...{ single: missing.length === 1, expected: String(feeds.expected.length) },
        address: `${publicAddress(settings)}${actionAddress(closeAnyway(feeds))}`,
      }),
      attachments: [],
    };
  },
};

const monthOf = (day: string | null): string => (day ?? '').slice(0, 7);

const recipientOf = ({ finance_email: finance, operations_email: operations }: Settings) =>
  finance !== ''
    ? { name: 'Finance', address: finance }
    : operations !== ''
      ? { name: 'Operations', address: operations }
      : undefined;

async function readWaiting(tx: Transaction, { environment, settings }: ActorContext): Promise<Feeds | undefined> {
  const feeds = await readNextFeeds(tx, settings, environment.now());
  return feeds?.due && isIncomplete(feeds) ? feeds : undefined;
}

async function queueDue(tx: Transaction, context: ActorContext): Promise<void> {
  const { environment, settings } = context;
  if (recipientOf(settings) === undefined) return;
  const feeds = await readWaiting(tx, context);
  if (feeds === undefined) return;
  // The e-mail must stay valid after the month is closed, so the e-mail names the month by its first day.
  const day = `${feeds.month}-01`;
  const told = await readMissingFeedsEmails(tx, day);
  if (told.length > 0) return;
  const email = { kind: 'missing_feeds', day, name: `missing-feeds.${feeds.month}` } as const;
  await queueEmails(tx, [email], { now: environment.now().toISO(), eventId: null, mailDomain: mailDomain(settings) });
}
