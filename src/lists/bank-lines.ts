/** The lines of bank statements, whatever they are: `reckoner bank list` and the console's Bank lines. */

import { z } from 'zod';
import { query, Transaction } from '#database/transaction';
import { fileOf } from '#payments/bank-import/bank-lines.sql';
import { BANK_LINE_STATES, BankLineState } from '#payments/enums';
import { names } from '#text';
import { choice, date, defineList, given, ListQuery, Mark, Sums, soughtAmount, soughtText, text } from './list.ts';
import { PATTERN, sortedBy, sortsOf, sumsBy, TEXTS } from './statement.ts';

type BankLineRow = Readonly<{
  bank_line_id: number;
  booked_on: string;
  account: string;
  currency: string;
  /** The amount of a debit is negative. */
  amount: string;
  bank_reference: string | null;
  payer: string | null;
  text: string | null;
  type: string;
  state: BankLineState;
  payment_id: number | null;
  booked_to: string | null;
  reason: string | null;
  file: string;
}>;

const filters = z.strictObject({
  state: choice('Status', `${BANK_LINE_STATES.join(', ')}.`, BANK_LINE_STATES).optional(),
  account: text('Account', 'Only lines of this account of ours.').optional(),
  amount: soughtAmount('Amount', 'Only lines of exactly this amount.').optional(),
  text: soughtText(
    'Text',
    "Only lines with this text in the bank's text, a reference or the counterparty's name.",
  ).optional(),
  from: date('From', 'Booked by the bank on or after this day.').optional(),
  to: date('To', 'Booked by the bank on or before this day.').optional(),
  currency: text('Currency', 'Only lines in this currency.').optional(),
  amountFrom: soughtAmount('Amount from', 'Only lines of at least this amount.').optional(),
  amountTo: soughtAmount('Amount to', 'Only lines of at most this amount.').optional(),
});

const FROM = 'bank_lines l JOIN bank_line_states s USING (bank_line_id)';

const WHERE = `(:state::text IS NULL OR s.state = :state)
         AND (:account::text IS NULL OR l.account = :account)
         AND (:amount::numeric IS NULL OR l.amount = :amount::numeric)
         AND (:from::date IS NULL OR l.bank_booked_on >= :from::date)
         AND (:to::date IS NULL OR l.bank_booked_on <= :to::date)
         AND (:currency::text IS NULL OR l.currency = upper(:currency))
         AND (:amountFrom::numeric IS NULL OR l.amount >= :amountFrom::numeric)
         AND (:amountTo::numeric IS NULL OR l.amount <= :amountTo::numeric)
         AND (:text::text IS NULL OR l.text IN ${TEXTS} OR l.payer_name IN ${TEXTS}
              OR lower(l.bank_reference) LIKE ${PATTERN} OR lower(s.reason) LIKE ${PATTERN})`;

const SORTED = sortedBy({
  select: () => `
            l.bank_line_id, l.bank_booked_on AS booked_on, l.account, l.currency, signed_amount(l)::text AS amount,
            l.bank_reference, personal(l.payer_name) AS payer, personal(l.text) AS text, l.type, s.state, s.payment_id,
            s.booked_to, s.reason,
            ${fileOf('l')} AS file`,
  from: FROM,
  where: WHERE,
  id: 'l.bank_line_id',
  by: { bank_line_id: 'l.bank_line_id', booked_on: 'l.bank_booked_on', amount: 'signed_amount(l)' },
});
type BankLineFilter = z.output<typeof filters>;
type BankLineSort = keyof typeof SORTED;

const readRows = (
  tx: Transaction,
  { sort, filter, after, limit }: ListQuery<BankLineFilter, BankLineSort>,
): Promise<BankLineRow[]> => query(tx, SORTED[sort], { ...given(filters, filter), after, limit });

async function readTotals(tx: Transaction, { filter }: ListQuery<BankLineFilter, BankLineSort>): Promise<Sums> {
  return sumsBy(
    await query<{ currency: string; count: number; amount: string }>(
      tx,
      `SELECT l.currency, count(*)::int AS count, sum(signed_amount(l)) AS amount
     FROM ${FROM} WHERE ${WHERE} GROUP BY l.currency ORDER BY l.currency`,
      given(filters, filter),
    ),
  );
}

const TONES = {
  payment: 'good',
  payout: 'good',
  return: 'plain',
  refund: 'good',
  booked: 'good',
  unbooked: 'warn',
} as const;
const standingOf = ({ state }: BankLineRow): Mark[] => [{ text: state, tone: TONES[state] }];

export const bankLines = defineList({
  command: 'bank list',
  summary: 'List the lines of bank statements, and what each of them is',
  title: 'Bank lines',
  one: 'bank line',
  ofLedger: true,
  none: 'No bank file has been imported yet.',
  filters,
  sorts: sortsOf(SORTED, '-bank_line_id', 'bank_line_id'),
  columns: {
    bank_line_id: {
      ...{ heading: 'Line', type: 'count' },
      to: ({ payment_id, booked_on }) =>
        payment_id === null ? ['payments/lines', { from: booked_on, to: booked_on }] : ['payments', String(payment_id)],
    },
    booked_on: { heading: 'Booked', type: 'date' },
    account: { heading: 'Our account', unlessSame: true },
    currency: { heading: '' },
    amount: { type: 'amount' },
    bank_reference: { heading: 'Reference' },
    payer: { heading: 'Counterparty' },
    text: {},
    type: { heading: 'Code' },
    said: {
      ...{ heading: 'Text', look: 'wrap', cut: true },
      value: ({ text, bank_reference, payer }) => text || payer || bank_reference,
    },
    stated: {
      ...{ heading: 'Text and account', look: 'wrap' },
      value: ({ text, bank_reference, payer, account }) => `${text || payer || bank_reference} · ${account}`,
    },
    state: { heading: 'Status' },
    standing: { heading: 'Status', type: 'marks', value: standingOf },
    payment_id: { type: 'count' },
    booked_to: {},
    reason: {},
    why: {
      ...{ heading: 'Booked to or reason', look: 'wrap', cut: true },
      value: ({ booked_to, reason }) => booked_to ?? reason,
    },
    file: {},
  },
  sheet: names(
    'bank_line_id booked_on account currency amount bank_reference payer text type state payment_id booked_to',
    'reason file',
  ),
  terminal: names('bank_line_id booked_on account amount currency state said why'),
  page: names('bank_line_id booked_on standing stated amount why'),
  remedies: ({ bank_line_id, state }) => {
    const input = { bankLineId: String(bank_line_id) };
    const book = { label: state === 'booked' ? 'Change' : 'Book it', action: 'bank.book', input, partner: null };
    if (state === 'unbooked') return [book];
    return state === 'booked' ? [book, { label: 'Take back', action: 'bank.unbook', input, partner: null }] : [];
  },
  key: ({ bank_line_id }) => String(bank_line_id),
  read: readRows,
  sums: readTotals,
});
