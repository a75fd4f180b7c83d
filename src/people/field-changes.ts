/** Field changes of records that are updated in place, as in the details of their audit events. */
import { isDeepStrictEqual } from 'node:util';
import { fieldWords } from '#field-names';

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

/** In words, for people. Files and JSON have the field's path. */
export const changeCells = ({ field, old, new: after }: FieldChange): [string, string, string] => [
  fieldWords(field),
  valueText(old),
  valueText(after),
];

/** With a word for what is empty. */
export const changeWords = (change: FieldChange) => changeCells(change).map((cell) => cell || 'none');

/** `3 instead of 2.5 for “Holds, times the largest invoice”` */
export const changeText = (change: FieldChange) => {
  const [field, old, after] = changeCells(change);
  return `${after || 'nothing'} instead of ${old || 'nothing'} for “${field}”`;
};

export const valueText = (value: FieldChange['old']) => {
  if (value === null) return '';
  if (typeof value !== 'object') return String(value);
  return value.every((each) => typeof each === 'string') ? value.join(', ') : JSON.stringify(value);
};
