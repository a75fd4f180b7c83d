/** Field changes of master data, as they are shown. */
import { type ChangeEvent, changeCells } from '../people/field-changes.ts';
import { type Output, table } from './output.ts';
import { type PresentOptions, present } from './present.ts';

/** Prints change events for people, as JSON or as a sheet, one row a field. `none` is printed if there are none. */
export function presentChanges(
  output: Output,
  options: PresentOptions,
  events: readonly ChangeEvent[],
  none: string,
): Promise<void> {
  const rows = events.flatMap((event) =>
    event.changes.map((change) => {
      const [field, old, after] = changeCells(change);
      return { ...event, field, old, new: after };
    }),
  );
  return present(
    output,
    options,
    events,
    () => ({
      name: 'Changes',
      columns: {
        event_id: 'count',
        occurred_at: 'text',
        action: 'text',
        field: 'text',
        old: 'text',
        new: 'text',
        claimed_by: 'text',
        os_user: 'text',
        host: 'text',
        via: 'text',
      },
      rows,
    }),
    () =>
      rows.length === 0
        ? none
        : table(
            ['when (UTC)', 'field', '~old', '~new', 'by'],
            rows.map((row, at) => [
              // The fields of one event stand together: the first has its time.
              rows[at - 1]?.event_id === row.event_id ? '' : row.occurred_at.slice(0, 16).replace('T', ' '),
              row.field,
              row.old,
              row.new,
              rows[at - 1]?.event_id === row.event_id ? '' : (row.claimed_by ?? row.os_user),
            ]),
          ),
  );
}
