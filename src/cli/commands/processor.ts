/** `reckoner processor import|poll|match|unmatch|reverse` and `reckoner reconcile`. */
import { readFileSync } from 'node:fs';
import { EXIT, reasonOf, refuse } from '../../errors/refusals.ts';
import { Amount } from '../../money.ts';
import type { Month } from '../../month.ts';
import { readConnectedAccounts } from '../../splits/accounts.sql.ts';
import { billMissingShares } from '../../splits/bill.ts';
import { type Intake, importMovements, importSettlement } from '../../splits/import.ts';
import { type Matched, matchMovement, unmatchMovement } from '../../splits/match.ts';
import { type AccountReading, accessTo, readAccount } from '../../splits/poll.ts';
import { type Exception, needsWork, type Reconciliation, reconcileMonth } from '../../splits/reconcile-month.ts';
import { type ReversalReport, recordReversals, reverseByPerson } from '../../splits/reverse.ts';
import { AGES, type PayoutStatus, payoutNeedsWork } from '../../splits/verdicts.ts';
import { type Context, withContext } from '../context.ts';
import { deliverWithProgress } from '../deliveries.ts';
import { type Output, printable, short, table, wrapped } from '../output.ts';

export interface ProcessorImportOptions {
  readonly partner?: string;
  readonly account?: string;
}

export async function processorImport(output: Output, name: string, options: ProcessorImportOptions): Promise<number> {
  const { partner, account } = options;
  if ((partner === undefined) === (account === undefined)) {
    const reason = "'processor import' takes --partner with a settlement file, or --account with balance transactions";
    throw refuse('usage', { reason });
  }
  let text: string;
  try {
    text = readFileSync(name === '-' ? 0 : name, 'utf8');
  } catch (error) {
    throw refuse('file_unreadable', { file: name, reason: reasonOf(error) }, error);
  }
  const file = { name, text };
  return withContext(
    async (context) => {
      const intake = await context.database.transaction((tx) =>
        partner === undefined
          ? importMovements(tx, context, file, account as string)
          : importSettlement(tx, context, file, partner),
      );
      output.print(intake, () => describedIntake(intake));
      return EXIT.done;
    },
    { by: output.by },
  );
}

export const describedIntake = ({ read, recorded, duplicates, matched }: Intake): string =>
  `${read} read: ${recorded} recorded, ${duplicates} known already. The quotes of ${matched} share(s) were found.`;

export async function processorPoll(output: Output, { account }: { account?: string }): Promise<number> {
  return withContext(
    async (context) => {
      const { database, environment } = context;
      const accounts = account === undefined ? await accountsToRead(context) : [account];
      const readings: AccountReading[] = [];
      for (const each of accounts) readings.push(await readAccount(database, context, accessTo(environment, each)));
      output.print(readings, () =>
        readings.length === 0
          ? 'No account is read at the processor: none of a connected partner has a key.'
          : readings.map((each) => `${each.account}: ${describedIntake(each)}`).join('\n'),
      );
      return EXIT.done;
    },
    { by: output.by },
  );
}

/** The connected accounts that there is a key for. */
export async function accountsToRead({ database, environment }: Context): Promise<string[]> {
  const accounts = await database.reading((tx) => readConnectedAccounts(tx));
  return accounts.map(({ account }) => account).filter((account) => environment.connectedKeys.has(account));
}

export interface MatchOptions {
  readonly quote: string;
  readonly partner?: string;
  readonly account?: string;
  readonly amount?: string;
  readonly reason: string;
}

export async function processorMatch(
  output: Output,
  movement: string,
  { quote, partner, account, amount, reason }: MatchOptions,
  act: 'match' | 'unmatch',
): Promise<number> {
  return withContext(
    async (context) => {
      const request = { movement, account, quoteId: quote, partnerId: partner, reason };
      const matched = await context.database.transaction((tx) =>
        act === 'match' ? matchMovement(tx, context, { ...request, amount }) : unmatchMovement(tx, context, request),
      );
      output.print(matched, () => describedMatch(matched));
      return EXIT.done;
    },
    { by: output.by },
  );
}

function describedMatch({ movement, quote_id, partner_id, currency, amount, unexplained }: Matched): string {
  const whole = Amount.of(amount, currency);
  return (
    `${whole.forPeople()} of ${printable(movement)} is now matched to quote ${quote_id} of ${partner_id}; ` +
    `${Amount.of(unexplained, currency).forPeople()} of it no quote explains.`
  );
}

export async function processorReverse(
  output: Output,
  movement: string,
  { account, spotPrice }: { account?: string; spotPrice: string },
): Promise<number> {
  return withContext(
    async (context) => {
      const report = await context.database.transaction((tx) =>
        reverseByPerson(tx, context, { movement, account, spotPrice }),
      );
      output.print(report, () => describedReversals(report));
      return report.for_person.length > 0 ? EXIT.attention : EXIT.done;
    },
    { by: output.by },
  );
}

function describedReversals({ recorded, for_person }: ReversalReport): string {
  return [
    ...recorded.map(
      (each) =>
        `Quote ${each.quote_id} of ${each.partner_id}: reversal ${each.reversal_id} of ${each.currency} ` +
        `${each.spotPrice} = ${each.partnerCut} + ${each.invoiceAmount} is in the ledger.`,
    ),
    ...for_person.map(
      (each) =>
        `Quote ${each.quote_id} of ${each.partner_id}: ${each.currency} ${each.amount} was pulled back ` +
        `(${printable(each.movement)}), and ${each.reason}.`,
    ),
  ].join('\n');
}

export interface ReconcileOptions {
  readonly billMissing?: boolean;
  readonly reverse?: boolean;
  /** commander's form of --no-deliver. */
  readonly deliver: boolean;
}

export async function reconcile(output: Output, month: Month, options: ReconcileOptions): Promise<number> {
  return withContext(
    async (context) => {
      const { database, environment, settings } = context;
      const reversals = options.reverse
        ? await database.transaction((tx) => recordReversals(tx, context, month))
        : undefined;
      const invoices = options.billMissing
        ? await database.transaction((tx) => billMissingShares(tx, context, month))
        : undefined;
      if (invoices !== undefined && invoices.length > 0 && options.deliver) await deliverWithProgress(context, output);
      const { billable, ...found } = await database.reading((tx) =>
        reconcileMonth(tx, { settings, now: environment.now() }, month),
      );
      const report = {
        ...found,
        billable: billable.length,
        ...(reversals === undefined ? {} : { reversals }),
        ...(invoices === undefined ? {} : { invoices }),
      };
      output.print(report, () =>
        [
          ...(reversals === undefined ? [] : [describedReversals(reversals) || 'Nothing new was to be reversed.']),
          ...(invoices === undefined ? [] : [describedInvoices(invoices)]),
          describedReconciliation(found, billable.length),
        ].join('\n\n'),
      );
      return found.open > 0 ? EXIT.attention : EXIT.done;
    },
    { by: output.by },
  );
}

const describedInvoices = (numbers: readonly string[]): string =>
  numbers.length === 0 ? 'Nothing was to be billed.' : `Billed what never came: ${numbers.join(', ')}.`;

/** Of the exceptions, so many are shown to people; --json gives all. */
const SHOWN = 40;

export function describedReconciliation(found: Reconciliation, billable: number): string {
  const { month, partners, exceptions, ageing, other_movements, open } = found;
  if (partners.length === 0 && exceptions.length === 0) {
    return `${month}: no partner with a connected account has rows, and nothing unknown moved.`;
  }
  const sections = [
    table(
      ['partner', 'cur', '>quotes', '>as expected', '>expected', '>routed', '>billed', '>open'],
      partners.map((each) => [
        short(each.partner_id, 18),
        each.currency,
        each.quotes,
        each.matched,
        each.expected,
        each.routed,
        each.billed,
        each.open,
      ]),
    ),
  ];
  if (exceptions.length > 0) {
    const rows = [...exceptions]
      .sort((one, other) => Number(needsWork(other)) - Number(needsWork(one)))
      .slice(0, SHOWN)
      .map((each) => [each.status, short(printable(nameOf(each)), 34), each.currency, each.open, each.age_days]);
    sections.push(table(['what', 'quote', 'cur', '>open', '>days'], rows));
    if (exceptions.length > SHOWN) sections.push(`… and ${exceptions.length - SHOWN} more.`);
  }
  const choices = exceptions.filter((each) => each.status === 'unknown').slice(0, SHOWN);
  if (choices.length > 0)
    sections.push(choices.flatMap((each) => wrapped(describedUnknown(each), 80, '  ')).join('\n'));
  const besides = other_movements.filter(({ type }) => type !== 'payout');
  if (besides.length > 0) {
    sections.push(
      besides
        .map((each) => `Moved besides: ${each.count} ${printable(each.type)}, ${each.currency} ${each.net}.`)
        .join('\n'),
    );
  }
  sections.push(...describedPayouts(found));
  const awaited = partners.reduce((sum, each) => sum + each.awaited, 0);
  if (awaited > 0) sections.push(`${awaited} share(s) may still be on their way: accepted less than a week ago.`);
  sections.push(
    open === 0
      ? `${month} is reconciled: nothing is open.`
      : `${open} open, by days: ${AGES.map((age) => `${age}: ${ageing[age]}`).join(', ')}.`,
  );
  if (billable > 0) sections.push(`'reckoner reconcile ${month} --bill-missing' bills ${billable} of them.`);
  return sections.join('\n\n');
}

const PAYOUTS: Readonly<Record<PayoutStatus, string>> = {
  arrived: 'in the bank',
  on_its_way: 'on their way',
  not_arrived: 'NOT in the bank',
  untold: 'of which nobody says what they paid out',
  failed: 'failed',
};

function describedPayouts({ partners, payouts, not_paid_out }: Reconciliation): string[] {
  const inBank = partners
    .filter(({ in_bank }) => /[1-9]/.test(in_bank))
    .map(
      (each) =>
        `Of ${each.routed} ${each.currency} routed by ${short(each.partner_id, 18)}, ${each.in_bank} is in the bank.`,
    );
  const groups = new Map<string, number>();
  for (const { account, status } of payouts) {
    const key = `${account} ${status}`;
    groups.set(key, (groups.get(key) ?? 0) + 1);
  }
  const counted = [...new Set(payouts.map(({ account }) => account))].map((account) => {
    const told = (Object.keys(PAYOUTS) as PayoutStatus[])
      .map((status) => [groups.get(`${account} ${status}`) ?? 0, PAYOUTS[status]] as const)
      .filter(([count]) => count > 0);
    return `Payouts of ${printable(account)}: ${told.map(([count, what]) => `${count} ${what}`).join(', ')}.`;
  });
  const toLookAt = payouts
    .filter(({ status }) => payoutNeedsWork(status))
    .slice(0, SHOWN)
    .map(
      (each) =>
        `${printable(each.payout)} of ${each.moved_at.slice(0, 10)}, ${each.currency} ${each.amount}: ` +
        (each.status === 'untold'
          ? "what it paid out is not told. Run 'reckoner processor poll'."
          : 'no line of the bank is it. Ask the bank and the processor.'),
    );
  const passedOver = not_paid_out.map(
    (each) =>
      `${each.count} movement(s) of ${printable(each.account)}, ${each.currency} ${each.net}, since ` +
      `${each.since.slice(0, 10)} are in no payout: ${each.movements.slice(0, 3).map(printable).join(', ')}` +
      (each.count > 3 ? ', …' : ''),
  );
  const all = [...inBank, ...counted, ...toLookAt, ...passedOver].flatMap((line) => wrapped(line, 80, '  '));
  return all.length === 0 ? [] : [all.join('\n')];
}

const nameOf = ({ partner_id, quote_id, movements }: Exception): string =>
  quote_id === null ? `${movements[0]} of ${partner_id ?? 'nobody known'}` : `${quote_id} of ${partner_id ?? '?'}`;

function describedUnknown({ movements, account, currency, routed, quote_id, candidates }: Exception): string {
  const quotes = candidates.map((each) => `${each.quote_id} of ${each.partner_id}`);
  const moved = `${printable(movements[0] ?? '')} on ${account ?? '?'}: ${currency} ${routed}`;
  if (quote_id !== null) {
    return `${moved} names quote ${printable(quote_id)}, which the ledger does not have: its row may come yet.`;
  }
  return (
    `${moved} of no known quote. ` +
    (quotes.length === 0
      ? 'Ask the partner whose it is.'
      : `As much is open on ${quotes.join(', ')}: ask the partner, then 'reckoner processor match'.`)
  );
}
