/** Fields in sentences, named by their form labels. */
import type { z } from 'zod';
import { fieldsOf } from '../actions/fields.ts';
import { asOption, type NameOf } from '../field-names.ts';

/** `“Reason”`, or `“As: duplicate”`. A capitalized placeholder value, such as ACCOUNT, is left out. */
export const labelsOf =
  ({ input }: { readonly input: z.ZodObject }): NameOf =>
  (name, value) => {
    const label = fieldsOf(input).find((field) => field.name === name)?.label;
    if (label === undefined) return asOption(name, value);
    return value === '' || /^[A-Z]+$/.test(value) ? `“${label}”` : `“${label}: ${value.replaceAll('_', ' ')}”`;
  };
