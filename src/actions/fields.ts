/**
 * The fields of an action's input, and the filters of a list. Forms and command options are generated from the fields'
 * names and kinds.
 *
 * A schema refuses values that cannot be parsed, such as an invalid date. The function that acts checks whether a
 * document exists or an amount fits, so that every caller gets the same refusal.
 */
import { DateTime } from 'luxon';
import { z } from 'zod';
import { fieldProblems } from '#config/validation';
import { refuse } from '#errors/refusals';
import { asOption, fieldName, NameOf } from '#field-names';
import { isDate, isMonth, Month } from '#month';

export type FieldKind =
  | 'text'
  | 'lines'
  | 'partner'
  | 'search'
  | 'date'
  | 'instant'
  | 'month'
  | 'amount'
  | 'whole'
  | 'choice'
  | 'flag'
  | 'file';

type Words = Readonly<{
  label: string;
  /** What to enter, in a sentence or two, for forms and `--help`. */
  help: string;
  /** More help, which only forms show. */
  more?: string | undefined;
  /** The placeholder for the value in a command: `--partner <id>`. The default is the field's kind or name. */
  value?: string | undefined;
  /** The values are numbers of ledger rows, which forms show with their sales. */
  ofSales?: true;
}>;

type Rare = Pick<Words, 'more' | 'value' | 'ofSales'>;

type Description = Words &
  Readonly<{
    kind: FieldKind;
    choices?: readonly string[];
    /** For a schema that takes one value or several. */
    several?: true;
  }>;

export type Field = Omit<Description, 'several'> &
  Readonly<{
    name: string;
    required: boolean;
    several: boolean;
  }>;

const DESCRIPTIONS = z.registry<Description>();

type Describes = <Schema extends z.ZodType>(
  kind: FieldKind,
  schema: Schema,
  words: Words,
  more?: Partial<Description>,
) => Schema;
const described: Describes = (kind, schema, words, more = {}) => {
  DESCRIPTIONS.add(schema, { kind, ...words, ...more });
  return schema;
};

/** A text such as a document number, id or address. The function that uses the text checks the text. */
export const text = (label: string, help: string, rare: Rare = {}) =>
  described('text', z.string(), { label, help, ...rare });

/** A text of several lines. */
export const lines = (label: string, help: string) => described('lines', z.string(), { label, help });

/** A partner's id, or its name, which is replaced with the id (partner-names.ts). */
export const partner = (help = 'The partner, by id or name.', rare: Rare & Partial<Words> = {}) =>
  described('partner', z.string(), { label: 'Partner', help, ...rare });

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it searches for
const CONTROL = /[\u0000-\u001f\u007f]/;

/** One nonempty line of text that is stored permanently. */
export const LINE = z
  .string()
  .trim()
  .refine(
    (line) => line !== '' && line.length <= 500 && !CONTROL.test(line),
    'must be one line of 1 to 500 characters',
  );
export const line = (label: string, help: string, rare: Rare = {}) =>
  described('text', LINE.clone(), { label, help, ...rare });

export const DATE = z.string().refine(isDate, 'is not a date such as 2026-10-31');
export const date = (label: string, help: string) => described('date', DATE.clone(), { label, help });

/** A time with its zone, or a day, which begins at midnight UTC. The result is an ISO time in UTC. */
export const INSTANT = z.string().transform((value, context) => {
  const instant = DateTime.fromISO(value, { zone: 'utc' });
  const said = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d))?$/.test(value);
  if (said && instant.isValid) return instant.toISO();
  const message = 'is neither a day such as 2026-11-01 nor a time such as 2026-11-01T06:00:00Z';
  context.issues.push({ code: 'custom', message, input: value });
  return z.NEVER;
});
export const instant = (label: string, help: string) => described('instant', INSTANT.clone(), { label, help });

export const MONTH = z.custom<Month>(
  (value) => typeof value === 'string' && isMonth(value),
  'is not a month such as 2026-10',
);
export const month = (label: string, help: string) => described('month', MONTH.clone(), { label, help });

/**
 * An amount in major units of its currency. The action that uses the amount knows its currency, and therefore its
 * number of decimals.
 */
export const amount = (label: string, help: string, rare: Rare = {}) =>
  described('amount', z.string(), { label, help, ...rare });

/** An amount to search for, without currency: `1,250.00` becomes `1250.00`. */
export const SOUGHT_AMOUNT = z
  .string()
  .trim()
  .regex(/^(\d{1,15}|\d{1,3}(,\d{3}){1,4})(\.\d{1,6})?$/, 'is not an amount such as 1,250.00')
  .transform((value) => value.replaceAll(',', ''));
export const soughtAmount = (label: string, help: string) =>
  described('amount', SOUGHT_AMOUNT.clone(), { label, help });

/** The words to search for. PostgreSQL cannot store NUL. */
export const SOUGHT_TEXT = z.string().transform((value) => value.replaceAll('\0', '').trim().slice(0, 200));
export const soughtText = (label: string, help: string) => described('search', SOUGHT_TEXT.clone(), { label, help });

export function whole(label: string, help: string, { least = 1, most = MOST, ...rare }: Bounds & Rare = {}) {
  const reason = most === MOST ? 'is not a number such as 12' : `is not a whole number from ${least} to ${most}`;
  return described('whole', z.int(reason).min(least, reason).max(most, reason), { label, help, ...rare });
}
type Bounds = Readonly<{
  least?: number;
  most?: number;
}>;
const MOST = 999_999_999_999_999;

export const choice = <const Choice extends string>(label: string, help: string, choices: readonly Choice[]) =>
  described('choice', z.enum(choices, `must be one of ${choices.join(', ')}`), { label, help }, { choices });

/** A choice that an empty text clears. The function that uses the choice checks it. */
export const clearable = (label: string, help: string, choices: readonly string[]) =>
  described('choice', z.string(), { label, help }, { choices });

export const flag = (label: string, help: string) => described('flag', z.boolean(), { label, help });

export type FileInput = Readonly<{ name: string; bytes: Buffer }>;

const filesReadAgain = new WeakSet<object>();

/** A file whose bytes are read again when they are needed, so that a large file does not stay in memory. */
export function fileReadAgain(name: string, first: Buffer, read: () => Buffer): FileInput {
  let last = new WeakRef(first);
  const file = {
    name,
    get bytes() {
      const bytes = last.deref() ?? read();
      last = new WeakRef(bytes);
      return bytes;
    },
  };
  filesReadAgain.add(file);
  return file;
}

/** In JSON, the bytes of a file are base64, so that an input can be stored and read again. */
const FILE = z.union([
  z.custom<FileInput>((value) => typeof value === 'object' && value !== null && filesReadAgain.has(value)),
  z.strictObject({
    name: z.string(),
    bytes: z.union([
      z.instanceof(Uint8Array).transform((bytes): Buffer => (Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes))),
      z.base64().transform((text): Buffer => Buffer.from(text, 'base64')),
    ]),
  }),
]);
export const file = (label: string, help: string) => described('file', FILE.clone(), { label, help });

/** Converts an input to JSON that `readInput` can read again. */
export const inputJson = (input: unknown): unknown =>
  JSON.parse(
    JSON.stringify(input, function (this: Record<string, unknown>, key, value: unknown) {
      const given = this[key];
      return given instanceof Uint8Array ? Buffer.from(given).toString('base64') : value;
    }),
  );

export const several = <Schema extends z.ZodType>(schema: Schema) => z.array(schema).min(1);

/** The numbers of ledger rows. */
export const ledgerRows = (help: string) => several(whole('Rows', help, { value: 'row', ofSales: true }));

export const reason = (help = 'The reason. It is recorded.') => line('Reason', help);
/** For actions whose reason is not internal. */
export const note = () =>
  line('Internal note', 'Recorded, and never shown to the partner.', { value: 'note' }).optional();
export const documentNumber = (help = 'The number of the document, such as INV-2026-000176.') => text('Document', help);
/** A field that takes one value or several. */
export function oneOrMore<Value>(one: z.ZodType<Value>) {
  const all = z.preprocess((given) => [given].flat(), z.array(one).min(1));
  const { kind, ...words } = DESCRIPTIONS.get(one) as Description;
  const schema = all.transform((values) => (values.length === 1 ? (values[0] as Value) : values));
  return described(kind, schema, words, { several: true });
}
export const onLatestDate = () =>
  flag(
    'Date like the latest document',
    'Use the date of the latest document, if that date is after today because a clock was wrong.',
  ).optional();

/** Parses the values of fields. Refusal: argument_invalid. */
export function readFields<Value>(fields: z.ZodType<Value>, given: unknown, nameOf: NameOf = asOption) {
  const read = fields.safeParse(given);
  if (read.success) return read.data;
  const [{ path, reason } = { path: '', reason: '' }] = fieldProblems(read.error);
  // `paymentIds.1` is the second value of the field `paymentIds`.
  const [field = '', at = ''] = path.split('.');
  const value = (given as Record<string, unknown> | null)?.[field];
  const wrong = Array.isArray(value) ? value[Number(at)] : value;
  const refusal = refuse('argument_invalid', { argument: fieldName(field), value: String(wrong ?? ''), reason });
  throw refusal.named(nameOf);
}

/** Returns the fields of an input in order. Throws for a field without a description, which is a bug. */
export function fieldsOf(input: z.ZodObject): Field[] {
  return Object.entries(input.shape).map(([name, schema]) => {
    let inner: z.core.$ZodType = schema;
    let required = true;
    let many = false;
    while (!DESCRIPTIONS.has(inner)) {
      if (inner instanceof z.ZodOptional) required = false;
      else if (inner instanceof z.ZodArray) many = true;
      else throw new Error(`the field ${name} is not described`);
      inner = inner instanceof z.ZodArray ? inner.element : (inner as z.ZodOptional).unwrap();
    }
    const { several = many, ...description } = DESCRIPTIONS.get(inner) as Description;
    return { name, required, several, ...description };
  });
}

/** Returns one line for each given field: `To: billing@partner.example`. A file is shown by its name. */
export const inputInWords = (fields: z.ZodObject, input: unknown) =>
  fieldsOf(fields).flatMap(({ name, label, kind }) => {
    const value = (input as Readonly<Record<string, unknown>>)[name];
    if (value === undefined || value === false) return [];
    const texts = [value].flat().map((each) => (kind === 'file' ? (each as FileInput).name : String(each)));
    return [`${label}: ${kind === 'flag' ? 'yes' : texts.join(', ') || 'none'}`];
  });

/** Encodes a file as one form value that a page can pass to the next page. */
export const fileText = (name: string, bytes: Uint8Array) =>
  `${encodeURIComponent(name)},${Buffer.from(bytes).toString('base64')}`;

/** Splits a form value made by `fileText`. Returns undefined for other text. */
export function fileOfText(text: string) {
  const comma = text.indexOf(',');
  if (comma < 1 || !/^[\w%.!~*'()-]+$/.test(text.slice(0, comma))) return undefined;
  try {
    return { name: decodeURIComponent(text.slice(0, comma)), base64: text.slice(comma + 1) };
  } catch {
    return undefined;
  }
}

/**
 * Converts typed text for the kind of its field. Text that cannot be parsed is kept, and the field's schema refuses it.
 */
export const READ: Readonly<Partial<Record<FieldKind, (value: string) => unknown>>> = {
  // Pages group digits by three, so forms take that too.
  amount: (value) => (/^\d{1,3}(,\d{3})+(\.\d+)?$/.test(value) ? value.replaceAll(',', '') : value),
  lines: (value) => value.replaceAll('\r\n', '\n'),
  whole: (value) => (/^\d{1,15}$/.test(value) ? Number(value) : value),
  file: (value) => {
    const file = fileOfText(value);
    return file === undefined ? value : { name: file.name, bytes: Buffer.from(file.base64, 'base64') };
  },
};

/**
 * Converts a form's values to an input. Flags, numbers and files are parsed. Empty values are left out, unless an empty
 * field `clears` what is stored.
 */
export function inputOfForm(input: z.ZodObject, form: URLSearchParams, clears = false): Record<string, unknown> {
  const given = fieldsOf(input).map(({ name, kind, several: many }): [string, unknown] => {
    const all = form.getAll(name).map((value) => value.trim());
    const values = all.filter((value) => value !== '');
    if (clears && all.length > 0 && values.length === 0 && kind !== 'date' && kind !== 'month')
      return [name, many ? [] : ''];
    // A form sends `yes` for a ticked box. For any other value, the schema refuses the form.
    if (kind === 'flag') return [name, values[0] === 'yes' || values[0]];
    const read = values.map(READ[kind] ?? ((value) => value));
    // A newly chosen file replaces the file that the form already carried.
    return [name, values.length === 0 ? undefined : many ? read : kind === 'file' ? read.at(-1) : read[0]];
  });
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}
