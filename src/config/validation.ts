/** Field types that the settings, the partner file and HTTP requests share. */
import { z } from 'zod';
import { FieldProblem } from '#errors/refusals';

/** No line breaks, control characters, unpaired surrogates or changes of writing direction. */
export const line = (max = 200) =>
  z
    .string()
    .max(max)
    .regex(/^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]*$/u, 'must be one line without control characters');

export const emailAddress = z
  .string()
  .max(254)
  .refine((text) => z.email().safeParse(text).success, 'must be one e-mail address such as ap@partner.example');
export const optional = <T extends z.ZodType<string>>(schema: T) => z.union([z.literal(''), schema]);

/** Banks refuse cross-border wires without a structured address. */
export const addressSchema = z.strictObject({
  line1: line().default(''),
  line2: line().default(''),
  city: line().default(''),
  region: line().default(''),
  postal_code: line(20).default(''),
  country: z.union([z.literal(''), z.string().regex(/^[A-Z]{2}$/, 'must be an ISO 3166 code such as US')]).default(''),
});
export type Address = z.output<typeof addressSchema>;

/**
 * The problems of a validation with their paths. For a union, those of its last alternative, or its own message if that
 * rejected the value as a whole.
 */
export function fieldProblems(error: z.ZodError): FieldProblem[] {
  const flatten = (issues: readonly z.core.$ZodIssue[], base: readonly PropertyKey[]): FieldProblem[] =>
    issues.flatMap((issue) => {
      const path = [...base, ...issue.path];
      if (issue.code === 'invalid_union' && issue.errors.length > 0) {
        const deepest = issue.errors.at(-1) as readonly z.core.$ZodIssue[];
        const own = issue.message !== 'Invalid input' && deepest.every((each) => each.path.length === 0);
        if (deepest.length > 0 && !own) return flatten(deepest as z.core.$ZodIssue[], path);
      }
      if (issue.code === 'unrecognized_keys') {
        return issue.keys.map((key) => ({
          path: [...path, key].map(String).join('.'),
          reason: 'is not a known field',
        }));
      }
      // The reasons for an invalid record key are one level below.
      const reason =
        issue.code === 'invalid_key' ? issue.issues.map(({ message }) => message).join(', ') : issue.message;
      return [{ path: path.map(String).join('.'), reason: plainReason(reason) }];
    });
  return flatten(error.issues, []);
}

/** A wrong type in plain English. Users call our type ExactNumber a number. */
function plainReason(issue: string) {
  const reason = issue.replace('ExactNumber', 'number');
  const [, choices] = /^Invalid option: expected one of (.+)$/.exec(reason) ?? [];
  if (choices !== undefined) return `must be one of ${choices.replaceAll('"', '').split('|').join(', ')}`;
  const [, expected, received] = /^Invalid input: expected (\S+), received (\S+)$/.exec(reason) ?? [];
  if (expected === undefined || received === undefined) return reason;
  if (received === 'undefined') return 'is missing';
  const article = (type: string) => (/^[aeiou]/i.test(type) ? `an ${type}` : `a ${type}`);
  return `must be ${article(expected)}, not ${received === 'null' ? received : article(received)}`;
}
