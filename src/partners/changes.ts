/** Records the fields of each partner that an import changed, as audit events. */
import { Transaction } from '#database/transaction';
import { Actor, recordEvents } from '#people/audit-events';
import { ChangeEvent, readChangeEvents } from '#people/audit-events.sql';
import { applyChanges, changesBetween, FieldChange, fieldsOf, Value, valueText } from '#people/field-changes';
import { cancellationText } from './cancellation.ts';
import { cutRateText } from './cut-rate.ts';
import {
  ALWAYS,
  OF_ARRANGEMENT,
  PartnerView,
  readArrangements,
  readInactive,
  readPartnerEvents,
  readPartners,
} from './partners.sql.ts';

const CREATE = 'partner.create';
const UPDATE = 'partner.update';

export type PartnerChange = Readonly<{
  partner_id: string;
  created: boolean;
  changes: readonly FieldChange[];
}>;

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

/** The fields of partners as a preview compares them. */
export const readPartnerFacts = async (tx: Transaction, ids: readonly string[]) =>
  Object.fromEntries(
    (await readPartners(tx, ids)).map((partner) => [
      `partner ${partner.partner_id}`,
      Object.fromEntries(
        [...partnerFields(partner)].map(([field, value]) => [
          field.replaceAll('_', ' '),
          typeof value === 'boolean' ? (value ? 'yes' : 'no') : valueText(value),
        ]),
      ),
    ]),
  );

/** Names policies by their ids: `policies.parking.partner_cut_rate`. Dated rates and terms are one text. */
function partnerFields({ partner_id: _, policies, ...partner }: PartnerView) {
  const own = policies.map(({ policy_id, partner_cut_rate: rates, cancellation, ...policy }) => [
    policy_id,
    { ...policy, partner_cut_rate: cutRateText(rates), cancellation: cancellationText(cancellation) },
  ]);
  return fieldsOf({ ...partner, policies: Object.fromEntries(own) });
}

/** Records an event for each partner, whose details name the event of the import. */
export async function recordPartnerChanges(
  tx: Transaction,
  actor: Actor,
  changed: readonly PartnerChange[],
  { importEvent, now }: { importEvent: number; now: string },
) {
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

export const readPartnerChanges = (tx: Transaction, partnerId: string): Promise<ChangeEvent[]> =>
  readChangeEvents(tx, { subjects: [partnerId], actions: [CREATE, UPDATE] });

// --- Stored and replayed partners ---

type Fields = Map<string, Value>;

/** A partner's own fields, the instants of its inactivation, and its arrangements by month. */
const whole = (fields: Fields, inactive: Fields, arrangements: ReadonlyMap<string, Fields>): Fields =>
  new Map([
    ...[...fields].filter(([field]) => field !== 'arrangement_from' && !OF_ARRANGEMENT.some((own) => own === field)),
    ...inactive,
    ...[...arrangements].flatMap(([from, own]) =>
      [...own].map(([field, value]): [string, Value] => [`arrangements.${from}.${field}`, value]),
    ),
  ]);

export async function readStoredPartners(tx: Transaction): Promise<ReadonlyMap<string, Fields>> {
  const inactive = new Map<string, Fields>();
  for (const { partner_id, field, since } of await readInactive(tx)) {
    inactive.set(partner_id, (inactive.get(partner_id) ?? new Map()).set(field, since));
  }
  const arrangements = new Map<string, Map<string, Fields>>();
  for (const { partner_id, from_month, ...own } of await readArrangements(tx)) {
    const of = arrangements.get(partner_id) ?? new Map<string, Fields>();
    arrangements.set(partner_id, of.set(from_month, fieldsOf(own)));
  }
  return new Map(
    (await readPartners(tx)).map((partner) => {
      const id = partner.partner_id;
      return [id, whole(partnerFields(partner), inactive.get(id) ?? new Map(), arrangements.get(id) ?? new Map())];
    }),
  );
}

/** The partners by id, replayed from all `partner.create` and `partner.update` events. */
export async function replayPartners(tx: Transaction): Promise<ReadonlyMap<string, Fields>> {
  const events = await readPartnerEvents(tx, { actions: [CREATE, UPDATE] });
  const partners = new Map<string, { fields: Fields; inactive: Fields; arrangements: Map<string, Fields> }>();
  for (const { partner_id, occurred_at, changes } of events) {
    const of = partners.get(partner_id) ?? { fields: new Map(), inactive: new Map(), arrangements: new Map() };
    partners.set(partner_id, of);
    applyChanges(of.fields, changes ?? []);
    for (const { field, new: active } of changes ?? []) {
      if (field !== 'active' && !field.endsWith('.active')) continue;
      const since = field.replace(/active$/, 'inactive_since');
      if (active === false) of.inactive.set(since, occurred_at);
      else of.inactive.delete(since);
    }
    const from = of.fields.get('arrangement_from') ?? ALWAYS;
    const own = OF_ARRANGEMENT.map((field): [string, Value | undefined] => [field, of.fields.get(field)]);
    of.arrangements.set(String(from), new Map(own.filter((each): each is [string, Value] => each[1] !== undefined)));
  }
  return new Map(
    [...partners].map(([id, { fields, inactive, arrangements }]) => [id, whole(fields, inactive, arrangements)]),
  );
}
