/** Records the reversals that wait for a person, once the processor has taken our share back (service.md 7.5). */
import { lockImporters } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { IssueContext } from '#documents/issue/context';
import { recordTakenBack } from '#ledger/held';
import { HeldRow, RoutedRequest, readRoutedRequests } from '#ledger/held.sql';
import { inTenThousandths } from '#ledger/row';
import { lockProcessor } from './accounts.sql.ts';

/** The next call records further requests. */
const MOST_AT_ONCE = 1000;

/** Returns the recorded rows. */
export async function recordRequestedReversals(tx: Transaction, acting: IssueContext): Promise<readonly HeldRow[]> {
  await lockProcessor(tx);
  await lockImporters(tx);
  const ids = coveredBy(await readRoutedRequests(tx, MOST_AT_ONCE));
  return ids.length === 0 ? [] : recordTakenBack(tx, acting, ids);
}

/** The requests, in their order, that what was taken back covers together. */
function coveredBy(requests: readonly RoutedRequest[]) {
  const left = new Map<string, bigint>();
  return requests.flatMap(({ held_row_id, partner_id, quote_id, asked, beyond_ledger }) => {
    const quote = `${partner_id} ${quote_id}`;
    const rest = (left.get(quote) ?? inTenThousandths(beyond_ledger)) - inTenThousandths(asked);
    if (rest < 0n) return [];
    left.set(quote, rest);
    return [held_row_id];
  });
}
