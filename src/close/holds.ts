/**
 * Holds documents of a close: invoices and credit notes whose totals are unusual by the setting `holds`, and the
 * documents of partners whose number or last day of sales is unusual (`feeds.ts`). A held document is issued as usual,
 * but its e-mail and its open credit wait until finance releases it (`src/documents/hold.ts`).
 */
import { Transaction } from '#database/transaction';
import { holdDocument } from '#documents/hold';
import { IssueContext } from '#documents/issue/context';
import { IssueBatch } from '#documents/issue/issue.sql';
import { Amount } from '#money';
import { Doubt } from './feeds.ts';
import { OddDocument, readIssuedNumbers, readOddDocuments } from './months.sql.ts';

export async function holdDocuments(
  tx: Transaction,
  context: IssueContext,
  batch: IssueBatch,
  doubts: readonly Doubt[],
) {
  const reasons = new Map<string, string[]>();
  for (const [number, reason] of [...(await oddDocuments(tx, context, batch)), ...(await doubted(tx, doubts))]) {
    reasons.set(number, [...(reasons.get(number) ?? []), reason]);
  }
  for (const [number, each] of reasons) {
    await holdDocument(tx, context, { number, reason: each.join('; '), by: 'close' });
  }
}

type Held = readonly [number: string, reason: string];

async function oddDocuments(tx: Transaction, context: IssueContext, { month }: IssueBatch): Promise<Held[]> {
  const { above, times } = context.settings.holds;
  if (times === null && Object.keys(above).length === 0) return [];
  const odd = await readOddDocuments(tx, { month, above, times });
  return odd.map((each) => [each.number, reasonOf(each, context)]);
}

/** The documents in the currency of a doubt; if there are none, all documents of the partner. */
async function doubted(tx: Transaction, doubts: readonly Doubt[]): Promise<Held[]> {
  if (doubts.length === 0) return [];
  const issued = await readIssuedNumbers(tx, { partnerIds: doubts.map(({ partner_id }) => partner_id) });
  return doubts.flatMap(({ partner_id, currency, evidence }) => {
    const own = issued.filter((each) => each.partner_id === partner_id);
    const same = own.filter((each) => each.currency === currency);
    return (same.length > 0 ? same : own).map(({ number }): Held => [number, `${partner_id} ${evidence}`]);
  });
}

function reasonOf(odd: OddDocument, { settings: { holds } }: IssueContext) {
  const { currency, largest } = odd;
  const people = (amount: string) => Amount.of(amount, currency).forPeople();
  return odd.is_above
    ? `${people(odd.gross)} is above ${people(holds.above[currency] as string)}, the limit above which documents are held`
    : `${people(odd.gross)} is above ${holds.times} times ${people(largest as string)}, the largest invoice of the ` +
        '12 months before';
}
