/** Field changes of records that are updated in place, as in the details of their audit events. */
import { isDeepStrictEqual } from 'node:util';

export type Value = string | number | boolean | readonly unknown[];

export type FieldChange = Readonly<{
  field: string;
  /** Null if the field was empty or absent. */
  old: Value | null;
  new: Value | null;
}>;

/** The fields of an object by path, such as `address.city`. A list is one value. Empty texts and null are left out. */
export function fieldsOf(value: object, path = ''): Map<string, Value> {
  return new Map(
    Object.entries(value).flatMap(([name, each]: [string, Value | object | null | undefined]) => {
      if (each === null || each === undefined || each === '') return [];
      if (typeof each === 'object' && !Array.isArray(each)) return [...fieldsOf(each, `${path}${name}.`)];
      return [[path + name, each as Value]];
    }),
  );
}

export function changesBetween(before: ReadonlyMap<string, Value>, after: ReadonlyMap<string, Value>): FieldChange[] {
  return [...new Set([...before.keys(), ...after.keys()])]
    .sort()
    .map((field) => ({ field, old: before.get(field) ?? null, new: after.get(field) ?? null }))
    .filter((change) => !isDeepStrictEqual(change.old, change.new));
}

/** Applies changes to `fields` in place. */
export function applyChanges(fields: Map<string, Value>, changes: readonly FieldChange[]) {
  for (const change of changes) {
    if (change.new === null) fields.delete(change.field);
    else fields.set(change.field, change.new);
  }
}

export const changeCells = ({ field, old, new: after }: FieldChange): [string, string, string] => [
  field,
  valueText(old),
  valueText(after),
];

/** `holds.times: 2.5 → 3`. */
export const changeText = ({ field, old, new: after }: FieldChange) =>
  `${field}: ${valueText(old) || 'none'} → ${valueText(after) || 'none'}`;

export const valueText = (value: FieldChange['old']) => {
  if (value === null) return '';
  if (typeof value !== 'object') return String(value);
  return value.every((each) => typeof each === 'string') ? value.join(', ') : JSON.stringify(value);
};
