import { z } from 'zod';
import { fieldsOf } from '#actions/fields';
import { asOption, NameOf } from '#field-names';

/** An input field in a sentence: `“Reason”`, or `“As: duplicate”` with its value, unless that is a placeholder. */
export const labelsOf =
  ({ input }: { readonly input: z.ZodObject }): NameOf =>
  (name, value) => {
    const label = fieldsOf(input).find((field) => field.name === name)?.label;
    if (label === undefined) return asOption(name, value);
    return value === '' || /^[A-Z]+$/.test(value) ? `“${label}”` : `“${label}: ${value.replaceAll('_', ' ')}”`;
  };
