/** The input of one filter of a list. */
import { Field } from '#actions/fields';
import { PARTNER_NAMES } from './partner-names.tsx';

const INPUTS: Readonly<Partial<Record<Field['kind'], object>>> = {
  date: { type: 'date' },
  month: { placeholder: '2026-09', pattern: '\\d{4}-\\d\\d', size: 8 },
  search: { type: 'search' },
  amount: { inputMode: 'decimal', size: 9 },
  text: { size: 13 },
  partner: { size: 13, list: PARTNER_NAMES },
};

export function FilterInput({
  field: { name, label, kind, required, choices = [] },
  value,
}: {
  field: Field;
  value: string | undefined;
}) {
  if (kind === 'flag')
    return (
      <label class="check">
        <input type="checkbox" name={name} value="yes" checked={value === 'yes'} /> {label}
      </label>
    );
  return (
    <label class="field" for={`filter-${name}`}>
      {label}
      {kind === 'choice' ? (
        <select id={`filter-${name}`} name={name}>
          {!required && <option value="">All</option>}
          {choices.map((choice) => (
            <option value={choice} selected={value === choice}>
              {choice.replaceAll('_', ' ')}
            </option>
          ))}
        </select>
      ) : (
        <input id={`filter-${name}`} name={name} value={value} {...INPUTS[kind]} />
      )}
    </label>
  );
}
