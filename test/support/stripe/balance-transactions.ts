/** Balance transactions of an account: what its Connect did there, and what a test puts there. */
import { page, type Route } from './state.ts';

export const balanceTransactionRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: /^\/v1\/balance_transactions$/,
    request: 'balance_transaction_list',
    act: ({ state, account, params }) => {
      const { created, expand } = params as { created?: { gte?: number }; expand?: readonly string[] };
      const wanted = [...state.balanceTransactions.values()]
        .filter(({ id }) => (state.connect.owners.get(id) ?? account) === account)
        .filter((each) => Number(each['created']) >= (created?.gte ?? 0))
        .map((each) =>
          expand?.includes('data.source') ? each : { ...each, source: (each['source'] as { id: string }).id },
        );
      return page(wanted, params, '/v1/balance_transactions');
    },
  },
];
