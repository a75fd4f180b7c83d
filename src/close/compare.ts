/**
 * Compares what this ledger would invoice at a first close with what the previous system invoiced, by partner, policy
 * and currency. Amounts are the lines' amounts before tax. A credit is below zero. All functions are pure. Refusal:
 * comparison_invalid.
 */
import { DocumentRow } from '#documents/documents.sql';
import { LineProblem, refuse } from '#errors/refusals';
import { Amount, amountProblem, isCurrency, minorDigits } from '#money';
import { csvLines } from '#reading/csv';

export const COMPARED = ['equal', 'differs', 'missing here', 'missing there'] as const;

export type ComparedLine = Readonly<{
  partner_id: string;
  policy_id: string;
  currency: string;
  /** The amount that this ledger would invoice; null for none. */
  here: string | null;
  /** The amount that the previous system invoiced; null for none. */
  there: string | null;
  difference: string;
  result: (typeof COMPARED)[number];
}>;

const COLUMNS = ['partner_id', 'policy_id', 'currency', 'amount'] as const;
type Line = Readonly<Record<(typeof COLUMNS)[number], string>>;

/**
 * Parses the previous system's invoices: CSV with partner_id, policy_id, currency and amount. Lines of the same policy
 * are added up.
 */
export function parseInvoiced({ name, bytes }: Readonly<{ name: string; bytes: Uint8Array }>): Line[] {
  const problems: LineProblem[] = [];
  const complain = (reason: string, line: number | null) => {
    problems.push({ path: line === null ? '' : `line ${line}`, line, code: 'line_malformed', reason });
  };
  const lines = csvLines(Buffer.from(bytes).toString(), { needed: COLUMNS }, complain);
  if (problems.length === 0) {
    if (lines.length === 0) complain(`has no lines below its first, which names ${COLUMNS.join(', ')}`, null);
    for (const { line, cells } of lines) {
      const reason = problemOf(cells);
      if (reason !== undefined) complain(reason, line);
    }
  }
  if (problems.length > 0) throw refuse('comparison_invalid', { file: name, problems });
  return lines.map(({ cells }) => cells);
}

function problemOf({ partner_id: partner, policy_id: policy, currency, amount }: Line) {
  if (partner === '' || policy === '') return 'has no partner_id or no policy_id';
  if (!isCurrency(currency)) return `currency '${currency}' is not an ISO 4217 currency`;
  const wrong = amountProblem(amount, minorDigits(currency) as number);
  return wrong && `amount '${amount}' ${wrong.reason}`;
}

export function compareInvoices(documents: readonly DocumentRow[], invoiced: readonly Line[]): ComparedLine[] {
  const here = sumsOf(
    documents.flatMap(({ document, partner_id, currency, lines }) =>
      lines.map(({ policy_id, invoice_amount }) => {
        const amount = Amount.of(invoice_amount, currency);
        return { partner_id, policy_id, currency, amount: document === 'credit_note' ? amount.negated() : amount };
      }),
    ),
  );
  const there = sumsOf(invoiced.map((line) => ({ ...line, amount: Amount.of(line.amount, line.currency) })));
  return [...new Set([...here.keys(), ...there.keys()])].sort().map((key) => {
    const [partner_id, policy_id, currency] = JSON.parse(key) as [string, string, string];
    const [own, other] = [here.get(key), there.get(key)];
    const zero = Amount.zero(currency);
    const difference = (own ?? zero).minus(other ?? zero);
    const one = own === undefined ? 'missing here' : other === undefined ? 'missing there' : 'differs';
    return {
      ...{ partner_id, policy_id, currency, here: own?.toString() ?? null, there: other?.toString() ?? null },
      difference: difference.toString(),
      result: own !== undefined && other !== undefined && difference.isZero() ? 'equal' : one,
    };
  });
}

function sumsOf(lines: readonly (Omit<Line, 'amount'> & { readonly amount: Amount })[]) {
  const sums = new Map<string, Amount>();
  for (const { partner_id, policy_id, currency, amount } of lines) {
    const key = JSON.stringify([partner_id, policy_id, currency]);
    sums.set(key, sums.get(key)?.plus(amount) ?? amount);
  }
  return sums;
}
