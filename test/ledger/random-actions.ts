/** Sales that a file sends again under another id, in random histories: they are held until somebody decides. */
import { expect } from 'vitest';
import { type HeldRow, readHeldRows } from '../../src/ledger/held.sql.ts';
import { discardRows, releaseRows } from '../../src/ledger/held.ts';
import type { Action, History } from '../property/actions.ts';

const pick = <Value>({ random }: History, values: readonly Value[]): Value | undefined =>
  values[Math.floor(random() * values.length)];

const deciding =
  (decide: (history: History, row: HeldRow) => Promise<void>): Action['run'] =>
  async (history) => {
    const row = pick(history, await history.world.database.reading((tx) => readHeldRows(tx, { undecided: true })));
    if (row === undefined) return false;
    await decide(history, row);
    return true;
  };

export const HELD_ACTIONS: readonly Action[] = [
  {
    name: 'a file sends a sale again under another id',
    weight: 3,
    async run(history) {
      const { world } = history;
      const sales = await world.sql<{ row: Record<string, unknown>; held: number }>(
        `SELECT json_build_object('kind', kind, 'partner_id', partner_id, 'quote_id', quote_id, 'enrollment_id',
                  enrollment_id, 'policy_id', policy_id, 'currency', currency, 'accepted_at', accepted_at, 'spotPrice',
                  spot_price::text, 'partnerCut', partner_cut::text, 'invoiceAmount', invoice_amount::text) AS row,
                (SELECT count(*)::int FROM held_rows) AS held
         FROM ledger_rows WHERE kind = 'quote_accepted' AND enrollment_id IS NOT NULL ORDER BY entry_id`,
      );
      const sale = pick(history, sales);
      if (sale === undefined) return false;
      const again = { ...sale.row, quote_id: `again-${sale.held}-${sale.row['quote_id']}` };
      const report = await world.rows([again]);
      expect(report).toMatchObject({ accepted: 0, held: 1, rejected: 0 });
      return true;
    },
  },
  {
    name: 'a held row is released',
    weight: 1,
    run: deciding(async ({ world, model }, row) => {
      const ids = [row.held_row_id];
      await world.database.transaction((tx) => releaseRows(tx, world, { ids, reason: 'two sales' }));
      model.recordedSale(row);
    }),
  },
  {
    name: 'a held row is discarded',
    weight: 1,
    run: deciding(async ({ world }, row) => {
      const ids = [row.held_row_id];
      await world.database.transaction((tx) => discardRows(tx, world, { ids, reason: 'sent twice' }));
    }),
  },
];
