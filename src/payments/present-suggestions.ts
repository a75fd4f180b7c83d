/**
 * Current suggestions for payments with unapplied cash. Unlike the suggestions found at the import, current ones
 * consider later invoices, payers that finance has named, and accounts learned since. Only lists show current
 * suggestions. Reminders use the suggestions that were made at the import.
 */
import { Settings } from '#config/settings';
import { Transaction } from '#database/transaction';
import { Amount, isZero } from '#money';
import { Match, Suggestion } from './evidence.ts';
import { ExceptionalPayment, ExceptionSuggestion } from './exceptions.sql.ts';
import { match } from './match.ts';
import { OpenItems } from './open-items.ts';
import { readOpenItems } from './read-open-items.ts';

export type PresentMatch = Readonly<{
  suggestions: readonly ExceptionSuggestion[];
  account_partner: string | null;
  /** The written-off invoices that the payment names or was recorded for. */
  written_off: readonly string[];
}>;

export async function readPresentMatches(
  tx: Transaction,
  settings: Pick<Settings, 'small_difference'>,
  payments: readonly ExceptionalPayment[],
): Promise<Map<number, PresentMatch>> {
  if (payments.length === 0) return new Map();
  const items = await readOpenItems(
    tx,
    settings,
    payments.map((each) => ({ references: wordsOf(each), payer_account: each.payer_account })),
  );
  return new Map(
    payments.map((each) => [
      each.payment_id,
      {
        suggestions: suggestionsOf(each, items),
        account_partner: items.partnerOfAccount(each.payer_account ?? undefined) ?? null,
        written_off: writtenOffBy(each, items),
      },
    ]),
  );
}

/** Matching uses only `references`; these are all texts that may name a document. */
const wordsOf = ({ references, text, subject }: ExceptionalPayment) => [
  ...references,
  ...(text === null ? [] : [{ field: 'text', text }]),
  { field: 'subject', text: subject },
];

function writtenOffBy(payment: ExceptionalPayment, items: OpenItems) {
  const named = items.references(wordsOf(payment)).references.filter(({ guess }) => guess === undefined);
  return named
    .flatMap(({ number }) => items.byNumber(number) ?? [])
    .filter((each) => each.currency === payment.currency && !isZero(each.written_off ?? '0'))
    .map(({ number }) => number)
    .sort();
}

function suggestionsOf(payment: ExceptionalPayment, items: OpenItems) {
  const { partner_id, references, payer_name, payer_account, text, unapplied, currency, taken_from } = payment;
  const wasTakenFrom = ({ document, evidence }: Suggestion) =>
    [document.number, ...(evidence.set ?? [])].some((number) => taken_from.includes(number));
  const found = match(
    {
      ...{ amount: Amount.of(unapplied, currency), references, text: text ?? '', payer: partner_id ?? undefined },
      ...{ payer_name: payer_name ?? undefined, payer_account: payer_account ?? undefined },
    },
    items,
  );
  return [...together(found), ...found.suggested]
    .filter((each) => !wasTakenFrom(each))
    .map((each) => presented(accountNotNamed(each), items));
}

function accountNotNamed(found: Suggestion) {
  const { document, evidence } = found;
  if (evidence.rule !== 'amount_and_account') return found;
  const why = `${document.number} is the only open invoice that ${evidence.payer?.partner_id} pays over this amount`;
  return { ...found, evidence: { ...evidence, why } };
}

/** The suggestions that would be applied if the payment arrived now. Several documents become one set. */
function together({ applied, credit = [] }: Match) {
  if (applied.length < 2 || credit.length > 0) return [...applied];
  const set = applied.map(({ document }) => document.number);
  return applied.map((each) => ({ ...each, evidence: { ...each.evidence, set } }));
}

const presented = (
  { document: { number, partner_id, balance }, amount, confidence, evidence }: Suggestion,
  items: OpenItems,
) => ({
  ...{ number, same_as: null, partner_id, confidence, evidence, reversible: false },
  amount: amount.toString(),
  balance: balance.toString(),
  less: (evidence.less ?? []).flatMap((name) => {
    const credit = items.creditNote(name);
    return credit?.partner_id === partner_id && credit.balance.isPositive()
      ? [{ number: name, balance: credit.balance.toString() }]
      : [];
  }),
});
