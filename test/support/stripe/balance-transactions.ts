/** Balance transactions of an account: what its Connect did there, and what a test puts there. */
import { page, type Route } from './state.ts';

export const balanceTransactionRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: /^\/v1\/balance_transactions$/,
    request: 'balance_transaction_list',
    action: ({ state, account, params }) => {
      const { created, expand, payout } = params as {
        created?: { gte?: number };
        expand?: readonly string[];
        payout?: string;
      };
      const wanted = [...state.balanceTransactions.values()]
        .filter(({ id }) => (state.connect.owners.get(id) ?? account) === account)
        .filter((each) => Number(each['created']) >= (created?.gte ?? 0))
        .filter(
          ({ id, source }) =>
            payout === undefined || [(source as { id: string }).id, state.paidOut.get(id)].includes(payout),
        )
        .map((each) =>
          expand?.includes('data.source') ? each : { ...each, source: (each['source'] as { id: string }).id },
        );
      return page(wanted, params, '/v1/balance_transactions');
    },
  },
];
