/**
 * The alert to finance and operations that the bank details on invoices have changed, the classic invoice fraud. It also
 * goes to addresses that were replaced shortly before. A file that only proposes other bank details is named by the status.
 */
import { Settings } from '#config/settings';
import { Transaction } from '#database/transaction';
import { EmailComposer, letterView, oneLine } from '#mail/email';
import { isOneAddress } from '#mail/message';
import { queueEmails } from '#mail/outbox.sql';
import { ActorContext } from '#people/audit-events';
import { ChangeEvent } from '#people/audit-events.sql';
import { FieldChange } from '#people/field-changes';
import { readSettingsChanges } from '#people/settings-changes';
import { minuteOf } from '#text';
import { readAlarmedEvents } from './due.sql.ts';

export const instructionsChangedEmail: EmailComposer = {
  kind: 'instructions_changed',
  queueDue,
  async compose(tx, { day }, { environment, settings }, templates) {
    const changes = await readSettingsChanges(tx);
    const events = alarming(changes).filter((event) => dayOf(event) === day);
    const last = events.at(-1);
    const replaced = events.flatMap((event) => replacedBefore(changes, event));
    const [to, ...cc] = [...new Set([...addressesOf(settings), ...replaced])];
    if (to === undefined || last === undefined) return { held: 'settings.json has no finance_email' };
    return {
      to: { name: '', address: to },
      cc,
      content: templates.render('instructions_changed', {
        ...letterView({ environment, settings }),
        changes: events
          .flatMap(({ changes }) => changes.filter(isOfInstructions))
          .map((change) => ({ field: oneLine(change.field), before: shown(change.old), after: shown(change.new) })),
        at: minuteOf(last.occurred_at),
        by: oneLine(`${last.claimed_by === null ? '' : `${last.claimed_by}, as `}${last.os_user} on ${last.host}`),
      }),
      attachments: [],
    };
  },
};

const isOfInstructions = ({ field }: FieldChange) => /^instructions(\.|$)/.test(field);

const shown = (value: FieldChange['new']) =>
  value === null ? '(none)' : oneLine(typeof value === 'string' ? value : JSON.stringify(value));

const dayOf = ({ occurred_at }: ChangeEvent) => occurred_at.slice(0, 10);

/** The first record of the settings is not a change. */
const alarming = (events: readonly ChangeEvent[]) =>
  events.slice(1).filter(({ changes }) => changes.some(isOfInstructions));

const addressesOf = ({ finance_email: finance, operations_email: operations }: Settings) =>
  [finance, operations].filter((address) => address !== '');

const REPLACED_MILLISECONDS = 30 * 24 * 3600 * 1000;

/** A person who changes the bank details may first change the addresses that get the alert. */
const replacedBefore = (events: readonly ChangeEvent[], { event_id: id, occurred_at: at }: ChangeEvent) =>
  events
    .filter((each) => each.event_id <= id && Date.parse(at) - Date.parse(each.occurred_at) <= REPLACED_MILLISECONDS)
    .flatMap(({ changes }) => changes)
    .flatMap(({ field, old }) =>
      /^(finance|operations)_email$/.test(field) && typeof old === 'string' && isOneAddress(old) ? [old] : [],
    );

async function queueDue(tx: Transaction, context: ActorContext) {
  const changes = await readSettingsChanges(tx);
  const events = alarming(changes);
  if (events.length === 0) return;
  const told = await readAlarmedEvents(tx);
  const known = new Set<number | null>(told.map(({ event_id }) => event_id));
  const due = events.filter(
    (event) =>
      !known.has(event.event_id) && [...addressesOf(context.settings), ...replacedBefore(changes, event)].length > 0,
  );
  if (due.length === 0) return;
  const emails = due.map((event) => ({
    ...({ kind: 'instructions_changed', day: dayOf(event), event_id: event.event_id } as const),
    name: `instructions-changed.${event.event_id}`,
  }));
  await queueEmails(tx, emails, context);
}
