/**
 * The fields of a section of the settings, made from its schema: a field for each setting, and numbered entries for
 * lists and for settings by currency, action or name. The action takes the section as a JSON file, which this module
 * reads from the form.
 */
import { ComponentChildren } from 'preact';
import { z } from 'zod';
import { fileOfText, fileText } from '#actions/fields';
import { ACTIONS } from '#actions/loaded';
import { APPROVABLE_ACTIONS } from '#actions/registry';
import { CONTROL_ACCOUNTS } from '#config/accounts';
import { SECTION_NAMES, Section, sectionSchema } from '#config/settings';
import { FieldProblem } from '#errors/refusals';
import { fieldWords } from '#field-names';

/** Marks a form that has the fields of a section. */
export const EDIT = 'edit';

const sectionOf = (form: URLSearchParams) => SECTION_NAMES.find((each) => each === form.get('section'));

export const editsSection = (form: URLSearchParams): boolean => form.has(EDIT) && sectionOf(form) !== undefined;

/** Puts a section's JSON into the form, as the file that the action takes. */
export function putSection(form: URLSearchParams, value: unknown): URLSearchParams {
  form.set('file', fileText(`${form.get('section')}.json`, Buffer.from(JSON.stringify(value ?? null))));
  return form;
}

/** Replaces the fields of a section by its JSON. */
export function withSection(form: URLSearchParams): URLSearchParams {
  const section = sectionOf(form);
  if (section === undefined || !form.has(EDIT) || form.has('file')) return form;
  const { inner, nullable } = unwrapped(sectionSchema(section));
  const empty = nullable ? null : inner instanceof z.ZodArray ? [] : {};
  const value = read(inner, form, 'value') ?? empty;
  return putSection(form, section === 'accounts' ? mapped(value) : value);
}

type Rule = Readonly<Record<string, unknown>>;
const rulesIn = (value: unknown): readonly Rule[] => {
  const { accounts } = objectOf(value);
  return Array.isArray(accounts) ? accounts : [];
};

/** Without the accounts to which no account of the general ledger was entered. */
const mapped = (value: unknown) => ({
  ...objectOf(value),
  accounts: rulesIn(value).filter((rule) => Object.keys(rule).length > 1),
});

/** With the accounts that have no rule yet. */
const withEveryAccount = (value: unknown) => {
  const rules = rulesIn(value);
  const others = Object.keys(CONTROL_ACCOUNTS).filter((each) => rules.every(({ account }) => account !== each));
  return { ...objectOf(value), accounts: [...rules, ...others.map((account) => ({ account }))] };
};

/** `Sales (parking): Parking sales` */
function ruleTitle({ account, partner, policy, currency, to }: Rule): string {
  const only = [partner, policy, currency].filter(Boolean).join(', ');
  return `${CONTROL_ACCOUNTS[`${account}`] ?? account}${only && ` (${only})`}: ${to ?? 'not mapped'}`;
}

function jsonIn(form: URLSearchParams): unknown {
  const { base64 = '' } = fileOfText(form.get('file') ?? '') ?? {};
  try {
    return JSON.parse(Buffer.from(base64, 'base64').toString('utf8'));
  } catch {
    return undefined;
  }
}

/** The schema of the values that people enter. A union's last alternative is the filled one. */
function unwrapped(schema: z.core.$ZodType): { inner: z.core.$ZodType; nullable: boolean } {
  let inner = schema;
  let nullable = false;
  for (;;) {
    if (inner instanceof z.ZodNullable) nullable = true;
    if (inner instanceof z.ZodUnion) inner = inner.options.at(-1) as z.core.$ZodType;
    else if (inner instanceof z.ZodPipe) inner = inner.in;
    else if ('innerType' in inner._zod.def) inner = inner._zod.def.innerType as z.core.$ZodType;
    else return { inner, nullable };
  }
}

const isList = (schema: z.core.$ZodType): schema is z.ZodArray =>
  schema instanceof z.ZodArray && unwrapped(schema.element).inner instanceof z.ZodObject;

/** Undefined if nothing was entered. */
function read(schema: z.core.$ZodType, form: URLSearchParams, name: string): unknown {
  const { inner } = unwrapped(schema);
  const text = form.get(name)?.trim() ?? '';
  if (inner instanceof z.ZodObject) {
    const fields = Object.entries(inner.shape).map(([field, of]) => [field, read(of, form, `${name}.${field}`)]);
    const given = fields.filter(([, value]) => value !== undefined);
    return given.length === 0 ? undefined : Object.fromEntries(given);
  }
  if (inner instanceof z.ZodRecord) {
    const entries = entriesOf(form, name).flatMap((entry) => {
      const key = form.get(`${entry}.key`)?.trim() ?? '';
      const value = read(inner.valueType, form, entry);
      if (key === '' && value === undefined) return [];
      return [[key, value ?? (unwrapped(inner.valueType).inner instanceof z.ZodString ? '' : {})]];
    });
    return entries.length === 0 ? undefined : Object.fromEntries(entries);
  }
  if (isList(inner)) {
    const entries = entriesOf(form, name).map((entry) => read(inner.element, form, entry));
    return entries.filter((each) => each !== undefined);
  }
  if (text === '') return undefined;
  if (inner instanceof z.ZodArray) return text.split(',').map((each) => scalar(inner.element, each.trim()));
  return scalar(inner, text);
}

/** Text that cannot be read is kept, and the schema refuses it. */
function scalar(schema: z.core.$ZodType, text: string) {
  if (schema instanceof z.ZodNumber && /^-?\d{1,9}$/.test(text)) return Number(text);
  return isChoice(schema) && /^(true|false)$/.test(text) ? text === 'true' : text;
}

const isChoice = (schema: z.core.$ZodType) => schema instanceof z.ZodBoolean || schema instanceof z.ZodLiteral;

/** The names of the entries that were sent, without those to be removed. */
function entriesOf(form: URLSearchParams, name: string): string[] {
  const numbers = [...form.keys()].flatMap((key) =>
    key.startsWith(`${name}.`) ? [Number(key.slice(name.length + 1).split('.')[0])] : [],
  );
  return [...new Set(numbers)]
    .sort((one, other) => one - other)
    .map((at) => `${name}.${at}`)
    .filter((entry) => !form.has(`${entry}.remove`));
}

type NodeProps = Readonly<{
  schema: z.core.$ZodType;
  value: unknown;
  /** The name of the input, and the place in the JSON that problems name. */
  name: string;
  path: string;
  label: string;
  problems: readonly FieldProblem[];
}>;

export function SectionFields({ form, problems = [] }: { form: URLSearchParams; problems?: readonly FieldProblem[] }) {
  const section = sectionOf(form) as Section;
  return (
    <>
      <input type="hidden" name="section" value={section} />
      <input type="hidden" name={EDIT} value="yes" />
      <Node
        schema={sectionSchema(section)}
        value={section === 'accounts' ? withEveryAccount(jsonIn(form)) : jsonIn(form)}
        {...{ name: 'value', path: '', label: KEYS[section] ?? fieldWords(section), problems }}
      />
      <datalist id="actions">
        {APPROVABLE_ACTIONS.map((action) => (
          <option value={action}>{ACTIONS.get(action)?.title}</option>
        ))}
      </datalist>
    </>
  );
}

function Node(props: NodeProps) {
  const { schema, value, name, path, label, problems } = props;
  const { inner } = unwrapped(schema);
  const at = (key: string | number) => (path === '' ? `${key}` : `${path}.${key}`);
  const own = problems.filter((each) => each.path === path && path !== '');
  if (inner instanceof z.ZodObject) {
    const given = objectOf(value);
    return (
      <Group label={label} own={own} bare={path === '' || label === ''}>
        {Object.entries(inner.shape).map(([key, of]) => (
          <Node
            schema={of}
            value={given[key]}
            name={`${name}.${key}`}
            path={at(key)}
            {...{ label: fieldWords(key), problems }}
          />
        ))}
      </Group>
    );
  }
  if (inner instanceof z.ZodRecord) {
    const entries = [...Object.entries(objectOf(value)), ['', undefined] as const];
    const of = path === '' ? label : (KEYS[path.split('.').at(-1) ?? ''] ?? 'Name');
    const isScalar = unwrapped(inner.valueType).inner instanceof z.ZodString;
    const valueLabel = isScalar ? (AMOUNTS[of] ?? 'Name') : '';
    return (
      <Group label={label} own={own} bare={path === ''}>
        {entries.map(([key, each], index) => (
          <Entry name={`${name}.${index}`} label={key === '' ? 'Another' : key} isNew={key === ''}>
            <Text name={`${name}.${index}.key`} label={of} value={key} list={of === 'Action' ? 'actions' : undefined} />
            <Node
              schema={inner.valueType}
              value={each}
              name={`${name}.${index}`}
              path={at(key)}
              {...{ label: valueLabel, problems }}
            />
          </Entry>
        ))}
      </Group>
    );
  }
  if (isList(inner)) {
    const entries = [...(Array.isArray(value) ? value : []), undefined];
    return (
      <Group label={label} own={own} bare={false}>
        {entries.map((each: unknown, index) => {
          const rule = path === 'accounts' ? objectOf(each) : {};
          const isFolded = 'account' in rule && !problems.some((own) => `${own.path}.`.startsWith(`${at(index)}.`));
          return (
            <Entry
              name={`${name}.${index}`}
              label={each === undefined ? 'Another' : 'account' in rule ? ruleTitle(rule) : `${index + 1}`}
              isNew={each === undefined || ('account' in rule && !('to' in rule))}
              isOpen={each !== undefined && !isFolded}
            >
              <Node
                schema={inner.element}
                value={each}
                name={`${name}.${index}`}
                path={at(index)}
                {...{ label: '', problems }}
              />
            </Entry>
          );
        })}
      </Group>
    );
  }
  const shown = Array.isArray(value) ? value.join(', ') : value == null ? '' : String(value);
  const choices =
    inner instanceof z.ZodEnum
      ? inner.options.map(String)
      : isChoice(inner)
        ? ['true', ...(inner instanceof z.ZodBoolean ? ['false'] : [])]
        : undefined;
  return <Text {...{ name, label, own, choices }} value={shown} />;
}

function Group({
  label,
  own,
  bare,
  children,
}: {
  label: string;
  own: readonly FieldProblem[];
  bare: boolean;
  children: ComponentChildren;
}) {
  if (bare) return <>{children}</>;
  return (
    <fieldset class="field stack">
      <legend>{label}</legend>
      <Own own={own} />
      {children}
    </fieldset>
  );
}

const Entry = ({
  name,
  label,
  isNew,
  isOpen = !isNew,
  children,
}: {
  name: string;
  label: string;
  isNew: boolean;
  isOpen?: boolean;
  children: ComponentChildren;
}) => (
  <details open={isOpen}>
    <summary>{label}</summary>
    {children}
    {!isNew && (
      <label class="check">
        <input type="checkbox" name={`${name}.remove`} value="yes" /> Remove
      </label>
    )}
  </details>
);

const Own = ({ own }: { own: readonly FieldProblem[] }) =>
  own.map(({ reason }) => <p class="problem">{`This ${reason}.`}</p>);

const objectOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? { ...value } : {};

function Text({
  name,
  label,
  value,
  own = [],
  choices,
  list,
}: Readonly<{
  name: string;
  label: string;
  value: string;
  own?: readonly FieldProblem[];
  choices?: readonly string[] | undefined;
  list?: string | undefined;
}>) {
  const common = { id: `field-${name}`, name, 'aria-invalid': own.length > 0 };
  return (
    <div class="field">
      <label for={`field-${name}`}>{label}</label>
      {choices === undefined ? (
        <input type="text" value={value} list={list} autocomplete="off" {...common} />
      ) : (
        <select {...common}>
          <option value="" />
          {[...new Set([...choices, value])].filter(Boolean).map((choice) => (
            <option value={choice} selected={choice === value}>
              {CHOICES[choice] ?? choice.replaceAll('_', ' ')}
            </option>
          ))}
        </select>
      )}
      <Own own={own} />
    </div>
  );
}

const CHOICES: Readonly<Record<string, string>> = { true: 'yes', false: 'no' };

/** What the entries of a setting are called by. */
const KEYS: Readonly<Record<string, string>> = {
  ...{
    instructions: 'Currency',
    above: 'Currency',
    reminder_minimum: 'Currency',
    small_difference: 'Currency or percent',
  },
  ...{ approvals: 'Action', countries: 'Country', names: 'Partner', reminders: 'Days after the due date' },
};

/** What the values by these are called. */
const AMOUNTS: Readonly<Record<string, string>> = { Currency: 'Amount', 'Currency or percent': 'Amount or percent' };
