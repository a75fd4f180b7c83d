/**
 * Lists what may exist outside a ledger that was restored to an earlier state: numbers, e-mails, events and payment
 * links that the ledger does not contain.
 */
import { Environment, WEBHOOK_SIGNING_KEY } from '#config/environment';
import { Settings } from '#config/settings';
import { Transaction } from '#database/transaction';
import { numberOf, seriesInDoubt } from '#documents/resume';
import { readLastNumbers } from '#documents/skipped-numbers.sql';
import { readWebhooks } from '#partner-events/webhooks.sql';
import { Pause, readPauses } from '#people/pauses.sql';
import { minuteOf, plural } from '#text';
import { table } from '#text-table';
import { LastRecorded, readLastRecorded, readLastStatements, readUnsent } from './after-restore.sql.ts';

type AfterRestore = Readonly<{
  pauses: readonly Pause[];
  /** The last number of each series in this ledger. The lost ledger may have issued later numbers. */
  numbers: readonly Readonly<{ series: string; last: string }>[];
  /** Series that have no number in this ledger. The lost ledger may have issued numbers of these series. */
  unused: readonly string[];
  /** The number of e-mails that are unsent in this ledger but may already have been sent, and the first few of them. */
  emails: Readonly<{
    unsent: number;
    documents: readonly string[];
  }>;
  /** Partners with a webhook, and the position up to which they have received events according to this ledger. */
  webhooks: readonly Readonly<{ partner_id: string; acknowledged: number; last: number }>[];
  last: LastRecorded;
  bank_accounts: readonly Readonly<{ account: string; reported_to: string }>[];
}>;

export async function readAfterRestore(
  tx: Transaction,
  context: Readonly<{ environment: Environment; settings: Settings }>,
): Promise<AfterRestore> {
  const { unsent, documents } = await readUnsent(tx);
  const last = await readLastRecorded(tx);
  const bank_accounts = await readLastStatements(tx);
  const pauses = await readPauses(tx);
  const numbers = (await readLastNumbers(tx)).map(({ series, last: sequence }) => ({
    series,
    last: numberOf({ series, sequence }),
  }));
  return {
    pauses,
    numbers,
    unused: seriesInDoubt(pauses, context).filter((series) => !numbers.some((each) => each.series === series)),
    emails: { unsent, documents },
    webhooks: (await readWebhooks(tx)).map(({ partner_id, acknowledged, last: to }) => ({
      ...{ partner_id, acknowledged, last: to },
    })),
    last,
    bank_accounts,
  };
}

/** Describes the findings for people, within 80 columns. */
export function describeAfterRestore(found: AfterRestore, environment: Pick<Environment, 'webhookKey'>) {
  const { pauses, numbers, unused, emails, webhooks, last, bank_accounts: accounts } = found;
  const restored = pauses.find((each) => each.state_of !== null);
  const sections = pauses.map(({ paused_at, reason }) => `Paused since ${minuteOf(paused_at)}:\n  ${reason}`);
  if (restored !== undefined) {
    sections.push(
      `This ledger was restored to its state at ${minuteOf(restored.state_of as string)}.\n` +
        'Later changes are missing here, although others may have seen them:',
    );
  }
  sections.push(
    numbers.length + unused.length === 0
      ? 'Numbers: no document was issued here.'
      : `Numbers that may have been issued after these:\n${table(
          ['series', 'last number here'],
          [...numbers.map((each) => [each.series, each.last]), ...unused.map((series) => [series, 'none'])],
        )}`,
  );
  if (emails.unsent > 0) {
    const more = emails.documents.length > 0 ? `:\n  ${emails.documents.join('\n  ')}` : '';
    sections.push(
      `${plural(emails.unsent, 'e-mail')} unsent here, which may already have been sent${more}\n` +
        'Those already sent would go out again: put such a document on hold, and dismiss any\n' +
        'other e-mail.',
    );
  }
  if (webhooks.length > 0) {
    sections.push(
      `Webhooks: positions after these will be reused for other events.\nTell the partners.\n${table(
        ['~partner', '>acknowledged', '>last here'],
        webhooks.map((each) => [each.partner_id, each.acknowledged, each.last]),
      )}${environment.webhookKey === undefined ? `\n${WEBHOOK_SIGNING_KEY} is not set, so no events are sent.` : ''}`,
    );
  }
  const lasts = [
    ['ledger row', last.ledger_row],
    ['payment', last.payment],
    ['event of the processor', last.processor_event],
    ['link made at the processor', last.payment_link],
    ...accounts.map((each) => [`bank account ${each.account}, statement`, each.reported_to]),
  ].filter((each): each is [string, string] => each[1] !== null);
  if (lasts.length > 0) {
    const rows = lasts.map(([what, at]) => [what, at.includes('T') ? minuteOf(at) : at]);
    sections.push(`Import again everything that is later than these:\n${table(['last here', 'at'], rows)}`);
  }
  return sections.join('\n\n');
}
