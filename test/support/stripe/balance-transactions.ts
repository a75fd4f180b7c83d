/** Balance transactions of the stand-in's one account: a test puts them there. */
import { page, type Route } from './state.ts';

export const balanceTransactionRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: /^\/v1\/balance_transactions$/,
    request: 'balance_transaction_list',
    act: ({ state, params }) => {
      const { created, expand } = params as { created?: { gte?: number }; expand?: readonly string[] };
      const wanted = [...state.balanceTransactions.values()]
        .filter((each) => Number(each['created']) >= (created?.gte ?? 0))
        .map((each) =>
          expand?.includes('data.source') ? each : { ...each, source: (each['source'] as { id: string }).id },
        );
      return page(wanted, params, '/v1/balance_transactions');
    },
  },
];
