import { fieldWords } from '#field-names';
import { sourceOf } from '#people/audit-events';
import { ChangeEvent } from '#people/audit-events.sql';
import { FieldChange } from '#people/field-changes';
import { inWords, plural } from '#text';
import { Instant } from './kit.tsx';

/** More changed fields, as in a first import, are collapsed. */
const UNFOLDED = 6;

export const ChangeLog = ({ events, nothing }: { events: readonly ChangeEvent[]; nothing: string }) =>
  events.length === 0 ? (
    <p class="soft">{nothing}</p>
  ) : (
    <ol class="changes">
      {events.toReversed().map((event) => (
        <li>
          <p class="soft">
            <Instant at={event.occurred_at} />
            {event.claimed_by !== null && ` · ${event.claimed_by}`}
            {` · ${sourceOf(event)}`}
          </p>
          {event.changes.length > UNFOLDED ? (
            <details>
              <summary>{plural(event.changes.length, 'field')}</summary>
              <Fields changes={event.changes} />
            </details>
          ) : (
            <Fields changes={event.changes} />
          )}
        </li>
      ))}
    </ol>
  );

const Fields = ({ changes }: { changes: readonly FieldChange[] }) => (
  <dl class="facts">
    {changes.map((change) => (
      <>
        <dt>{fieldWords(change.field)}</dt>
        <dd>
          {change.old !== null && (
            <>
              <del>{inWords(change.old)}</del>{' '}
            </>
          )}
          {change.new === null ? <span class="soft">removed</span> : <ins>{inWords(change.new)}</ins>}
        </dd>
      </>
    ))}
  </dl>
);
