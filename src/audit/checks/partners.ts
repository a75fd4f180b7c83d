/**
 * The check that partners, their policies and arrangements match their audit events, since they are updated in place.
 */
import { Transaction } from '#database/transaction';
import { readStoredPartners, replayPartners } from '#partners/changes';
import { changesBetween } from '#people/field-changes';
import { Difference, Finding } from './query.ts';

const NOTHING = new Map();

/**
 * Replays the events of each partner. Names each field that differs, with its value according to the events and its
 * current value.
 */
export async function findChangedPartners(tx: Transaction): Promise<Finding> {
  const recorded = await replayPartners(tx);
  const stored = await readStoredPartners(tx);
  const ids = new Set([...recorded.keys(), ...stored.keys()]);
  const differences: Difference[] = [];
  for (const id of ids) {
    const subject = `partner ${id}`;
    if (!stored.has(id)) differences.push({ subject, detail: 'was imported, but is missing' });
    else if (!recorded.has(id)) differences.push({ subject, detail: 'was not added by an import' });
    else {
      for (const change of changesBetween(recorded.get(id) ?? NOTHING, stored.get(id) ?? NOTHING)) {
        const detail = `${change.field} is ${shown(change.new)}; its events say ${shown(change.old)}`;
        differences.push({ subject, detail });
      }
    }
  }
  return { inspected: ids.size, differences };
}

const shown = (value: unknown) => (value === null ? 'empty' : JSON.stringify(value));
