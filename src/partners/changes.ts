/** Field by field, what an import changed: an audit event for each partner, `partner.create` or `partner.update`. */
import type { Transaction } from '../database/transaction.ts';
import { type Actor, recordEvents } from '../people/audit-events.ts';
import {
  type ChangeEvent,
  changesBetween,
  type FieldChange,
  fieldsOf,
  readChangeEvents,
} from '../people/field-changes.ts';
import type { PartnerView } from './queries.ts';

const CREATE = 'partner.create';
const UPDATE = 'partner.update';

export interface PartnerChange {
  readonly partner_id: string;
  readonly created: boolean;
  readonly changes: readonly FieldChange[];
}

export function partnerChanges(before: readonly PartnerView[], after: readonly PartnerView[]): PartnerChange[] {
  const known = new Map(before.map((partner) => [partner.partner_id, partner]));
  return after
    .map((partner) => {
      const old = known.get(partner.partner_id);
      const changes = changesBetween(old === undefined ? new Map() : partnerFields(old), partnerFields(partner));
      return { partner_id: partner.partner_id, created: old === undefined, changes };
    })
    .filter(({ changes }) => changes.length > 0);
}

/** Policies by their ids: `policies.parking.partner_cut_rate`. */
function partnerFields({ partner_id: _, policies, ...partner }: PartnerView) {
  const own = policies.map(({ policy_id, ...policy }) => [policy_id, policy]);
  return fieldsOf({ ...partner, policies: Object.fromEntries(own) });
}

/** Records an event for each partner, with the import's own event in its details. */
export async function recordPartnerChanges(
  tx: Transaction,
  actor: Actor,
  changed: readonly PartnerChange[],
  { importEvent, now }: { importEvent: number; now: string },
): Promise<void> {
  await recordEvents(
    tx,
    actor,
    changed.map(({ partner_id, created, changes }) => ({
      action: created ? CREATE : UPDATE,
      subject: partner_id,
      details: { import_event_id: importEvent, changes },
      now,
    })),
  );
}

/** Every recorded change of a partner, oldest first. */
export const readPartnerChanges = (tx: Transaction, partnerId: string): Promise<ChangeEvent[]> =>
  readChangeEvents(tx, partnerId, [CREATE, UPDATE]);
