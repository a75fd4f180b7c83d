/** The action of a random history that publishes and reads events: what was read before is there, unchanged and unmoved. */
import { expect } from 'vitest';
import { type PartnerEvent, readPartnerEvents } from '../../src/partner-events/event.ts';
import { Publisher } from '../../src/partner-events/publish.ts';
import type { Action, History } from '../property/actions.ts';
import type { World } from '../support/world.ts';

/** What was read so far, of each history and partner. */
const seen = new WeakMap<History, Map<string, PartnerEvent[]>>();

async function readAll({ database }: World, partnerId: string): Promise<PartnerEvent[]> {
  const events: PartnerEvent[] = [];
  for (;;) {
    const filter = { partnerId, after: events.at(-1)?.position ?? 0, limit: 37 };
    const page = await database.reading((tx) => readPartnerEvents(tx, filter));
    if (page.length === 0) return events;
    events.push(...page);
  }
}

async function publishAndRead(history: History): Promise<boolean> {
  const { world } = history;
  await new Publisher(world.database).publish(10_000);
  const before = seen.get(history) ?? new Map<string, PartnerEvent[]>();
  const now = new Map<string, PartnerEvent[]>();
  let added = 0;
  for (const { partner_id: id } of await world.sql<{ partner_id: string }>('SELECT partner_id FROM partners')) {
    const events = await readAll(world, id);
    const known = before.get(id) ?? [];
    expect(events.slice(0, known.length)).toEqual(known);
    expect(events.map(({ position }) => position)).toEqual(events.map((_, index) => index + 1));
    now.set(id, events);
    added += events.length - known.length;
  }
  seen.set(history, now);
  return added > 0;
}

export const EVENT_ACTIONS: readonly Action[] = [
  { name: 'events are published and read', weight: 3, run: publishAndRead },
];
