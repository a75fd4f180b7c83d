/** Random actions on several documents at once. */
import { expect } from 'vitest';
import type { Action as Described } from '../../src/actions/action.ts';
import { invoiceCredit } from '../../src/actions/invoice/credit.ts';
import { invoiceHold, invoiceRelease } from '../../src/actions/invoice/hold.ts';
import { invoiceRerun } from '../../src/actions/invoice/rerun.ts';
import { invoiceVoid } from '../../src/actions/invoice/void.ts';
import type { Action, History } from './actions.ts';
import { confirmed } from './confirmed.ts';

/** Up to six of all documents, so that some of them are refused. */
async function chosen({ random, world }: History): Promise<string[]> {
  const all = (await world.documents()).map(({ number }) => number);
  return all
    .map((number) => ({ number, at: random() }))
    .sort((one, other) => one.at - other.at)
    .slice(0, 2 + Math.floor(random() * 5))
    .map(({ number }) => number);
}

const uponSeveral =
  (action: Described<never>, more: object = {}): Action['run'] =>
  async (history) => {
    const { world } = history;
    const number = await chosen(history);
    if (number.length < 2) return false;
    const given = { number, ...more } as never;
    const json = await confirmed(world, action, given);
    if (Array.isArray(json)) expect(json).toHaveLength(number.length);
    return true;
  };

const SETTLED = ['payment_applied', 'credit_used', 'document_written_off', 'carried_over'] as const;
const reason = 'wrong rate';

export const SEVERAL_ACTS: readonly Action[] = [
  {
    ...{ name: 'void of several documents', weight: 1, rare: true },
    refusals: ['document_void', ...SETTLED],
    run: uponSeveral(invoiceVoid as never, { reason }),
  },
  {
    ...{ name: 'rerun of several documents', weight: 2, rare: true },
    refusals: ['document_void', 'not_of_the_ledger', 'carried_over'],
    run: uponSeveral(invoiceRerun as never),
  },
  {
    ...{ name: 'credit in full of several invoices', weight: 1, rare: true },
    refusals: ['document_void', 'credit_exceeds_invoice', 'not_an_invoice'],
    run: uponSeveral(invoiceCredit as never, { inFull: true, reason }),
  },
  {
    ...{ name: 'hold of several documents', weight: 1, rare: true },
    refusals: ['document_void', 'document_on_hold'],
    run: uponSeveral(invoiceHold as never, { reason }),
  },
  {
    ...{ name: 'release of several documents', weight: 1, rare: true },
    refusals: ['document_void', 'document_not_on_hold'],
    run: uponSeveral(invoiceRelease as never),
  },
];
