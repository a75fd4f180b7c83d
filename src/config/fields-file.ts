/** Reads handwritten JSON files. A file is accepted as a whole, or refused with all its mistakes and their places. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { FieldProblem, Refusal, reasonOf, refuse } from '#errors/refusals';
import { codeOf } from '#files';
import { repeatedName } from '#json';
import { fieldProblems } from './validation.ts';

type Reading<Schema extends z.ZodType> = Readonly<{
  schema: Schema;
  /** Either JSON.parse, or a parser that keeps numbers exact. */
  parse: (text: string) => unknown;
  invalid: (problems: readonly FieldProblem[]) => Refusal;
  /** If the file is missing (default: file_unreadable). */
  missing?: () => Refusal;
}>;

/**
 * A name that is repeated in an object is a mistake, because it is unclear which value was meant. Refusal:
 * file_unreadable.
 */
export function readFieldsFile<Schema extends z.ZodType>(
  file: string,
  { missing, ...reading }: Reading<Schema>,
): z.output<Schema> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (missing !== undefined && codeOf(error) === 'ENOENT') throw missing();
    throw refuse('file_unreadable', { file, reason: reasonOf(error) }, error);
  }
  return readFieldsText(text, reading);
}

export function readFieldsText<Schema extends z.ZodType>(
  given: string,
  { schema, parse, invalid }: Reading<Schema>,
): z.output<Schema> {
  const text = given.replace(/^\uFEFF/, '');
  let json: unknown;
  try {
    json = parse(text);
  } catch (error) {
    throw invalid([{ path: '', reason: `is not JSON: ${reasonOf(error)}` }]);
  }
  const twice = repeatedName(text);
  if (twice !== undefined) throw invalid([{ path: twice, reason: 'appears twice in one object' }]);
  const parsed = schema.safeParse(json);
  if (!parsed.success) throw invalid(fieldProblems(parsed.error));
  return parsed.data;
}
