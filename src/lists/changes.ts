/** Changes of settings and of a partner's fields: `reckoner settings history` and `reckoner partner history`. */

import { z } from 'zod';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { readPartnerChanges } from '#partners/changes';
import { readPartners } from '#partners/partners.sql';
import { ChangeEvent } from '#people/audit-events.sql';
import { changeCells } from '#people/field-changes';
import { readSettingsChanges } from '#people/settings-changes';
import { names } from '#text';
import { Column, defineList, ListQuery, partner } from './list.ts';

interface Change extends ChangeEvent {
  readonly field: string;
  readonly old: string;
  readonly new: string;
  readonly event: ChangeEvent;
  readonly is_first: boolean;
}

const changesOf = (events: readonly ChangeEvent[]): Change[] =>
  events.flatMap((event) =>
    event.changes.map((change, at) => {
      const [field, old, after] = changeCells(change);
      return { ...event, field, old, new: after, event, is_first: at === 0 };
    }),
  );

const columns = {
  event_id: { type: 'count' },
  occurred_at: { heading: 'When', type: 'instant' },
  when: { type: 'instant', value: (row) => (row.is_first ? row.occurred_at : '') },
  action: {},
  field: {},
  old: { cut: true },
  new: { cut: true },
  by: { value: (row) => (row.is_first ? (row.claimed_by ?? row.os_user) : '') },
  claimed_by: { heading: 'By' },
  os_user: { heading: 'System user' },
  host: {},
  via: {},
} satisfies Record<string, Column<Change>>;

const FACES = {
  title: 'Changes',
  one: 'change',
  ofLedger: true,
  columns,
  sorts: ['event_id', 'event_id'],
  terminal: names('when field old new by'),
  sheet: names('event_id occurred_at action field old new claimed_by os_user host via'),
  /** Returns each event once. */
  json: async (_tx: Transaction, rows: readonly Change[]) => [...new Set(rows.map(({ event }) => event))],
} as const;

const readOfSettings = async (tx: Transaction): Promise<Change[]> => changesOf(await readSettingsChanges(tx));

export const settingsChanges = defineList({
  ...FACES,
  command: 'settings history',
  summary: 'Show which settings changed, when, and which command recorded the change',
  none: 'No settings are recorded yet.',
  filters: z.strictObject({}),
  read: readOfSettings,
});

const ofPartner = z.strictObject({ id: partner().optional() });

/** Throws partner_unknown. */
async function readOfPartner(
  tx: Transaction,
  { filter: { id = '' } }: ListQuery<z.output<typeof ofPartner>>,
): Promise<Change[]> {
  if ((await readPartners(tx, [id])).length === 0) throw refuse('partner_unknown', { partner_id: id });
  return changesOf(await readPartnerChanges(tx, id));
}

export const partnerChanges = defineList({
  ...FACES,
  command: 'partner history',
  summary: 'Show which fields of a partner changed, when and by whom',
  none: 'No changes of this partner are recorded.',
  filters: ofPartner,
  words: { arguments: { id: '<id>' } },
  read: readOfPartner,
});
