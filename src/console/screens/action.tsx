/**
 * The form, preview and result pages of all actions, generated from their input schemas. A preview runs the action in a
 * transaction that is rolled back. A confirmation counts only if the effect is still the one shown.
 */
import { Action, FormPart } from '#actions/action';
import { digestOf, FullReport } from '#actions/consequence';
import { Field, fieldsOf, fileOfText } from '#actions/fields';
import { Preview } from '#actions/run';
import { SECTIONS, Section } from '#config/settings';
import { Blocks, CONFIRM_FORM } from '#console/blocks';
import { placesOf } from '#console/menu';
import { PARTNER_NAMES, PartnerNames, Partners } from '#console/partner-names';
import { actionHref, addressOf, Card, Form, inOneLine, Money, PageUser, Screen } from '#console/parts';
import { Remedies } from '#console/remedies';
import { EDIT, editsSection, SectionFields } from '#console/section-form';
import { RowToCorrect } from '#documents/rows-to-correct.sql';
import { FieldProblem, Refusal } from '#errors/refusals';
import { groupThousands } from '#money';
import { Effect, ReportText } from './effect.tsx';
import { USERS } from './people.tsx';

export type ActionRequest = Readonly<{
  action: Action;
  reader: PageUser;
  /** `section` names a form of the action, `fixed` the fields that it does not show. */
  form: URLSearchParams;
  partners: Partners;
  /** The sales of the ledger rows that the form names. */
  sales: readonly RowToCorrect[];
}>;

/** The field with the digest of the values that a form was filled with. */
export const FILLED = 'filled';

/** The names of the fields that take files. Undefined if there are none. */
export function filesOf({ input }: Pick<Action, 'input'>): readonly string[] | undefined {
  const files = fieldsOf(input).filter(({ kind }) => kind === 'file');
  return files.length === 0 ? undefined : files.map(({ name }) => name);
}

const partOf = ({ action: { forms = {} }, form }: ActionRequest): FormPart | undefined =>
  forms[form.get('section') ?? ''] ?? Object.values(forms)[0];

const fixedIn = ({ action, form }: ActionRequest) =>
  action.forms === undefined ? [] : (form.get('fixed') ?? '').split(' ').filter((name) => name in action.input.shape);

const frame = (action: Action, content: Screen['content'], lead?: string, asked?: ActionRequest): Screen => ({
  place: placeOf(action.name),
  title: (asked && partOf(asked)?.title) ?? action.title,
  crumbs: asked === undefined ? [] : crumbsOf(asked),
  lead,
  content,
});

function crumbsOf({ action, reader, form }: ActionRequest) {
  const place = placesOf(reader).find(({ path }) => path === placeOf(action.name));
  const [number, paymentId, partnerId, month] = ['number', 'paymentId', 'partnerId', 'month'].map((name) =>
    form.getAll(name).length > 1 ? null : form.get(name),
  );
  const of = (path: string, id: string) => `/console/${path}/${encodeURIComponent(id)}`;
  const subject =
    (number && { name: number, href: of('invoices', number) }) ||
    (paymentId && { name: `Payment ${paymentId}`, href: of('payments', paymentId) }) ||
    (partnerId && { name: partnerId, href: of('partners', partnerId) }) ||
    (month && { name: month, href: monthHref(action, month) });
  const users = action.name.startsWith('user.') ? [USERS] : [];
  return [
    ...(place === undefined ? [] : [{ name: place.name, href: `/console/${place.path}` }]),
    ...users,
    ...(subject ? [subject] : []),
  ];
}

const PLACES: Readonly<Record<string, Screen['place']>> = {
  invoice: 'invoices',
  credit: 'invoices',
  dispute: 'invoices',
  payment: 'payments',
  email: 'queue',
  close: 'close',
  books: 'close',
  statement: 'partners',
  partner: 'partners',
  client: 'partners',
  processor: 'accounts',
  shares: 'accounts',
  user: 'settings',
  settings: 'settings',
};

const placeOf = (name: string): Screen['place'] => PLACES[name.slice(0, name.indexOf('.'))] ?? null;

/** Reconciliation for actions on connected accounts, the close page for all others. */
export const monthHref = ({ name }: Action, month: string): string =>
  placeOf(name) === 'accounts'
    ? addressOf('/console/accounts', { month })
    : `/console/close/${encodeURIComponent(month)}`;

export function actionForm(asked: ActionRequest, refusal?: Refusal): Screen {
  const { action, reader, form, partners, sales } = asked;
  const edits = editsSection(form);
  const {
    fields,
    required,
    set = {},
  }: Pick<FormPart, 'fields' | 'required' | 'set'> = partOf(asked) ?? {
    fields: Object.keys(action.input.shape),
  };
  const fixed = fixedIn(asked);
  const inputs = fieldsOf(action.input)
    .filter(({ name }) => fields.includes(name) && !fixed.includes(name))
    .map((field) => ({ ...field, required: field.required || required?.includes(field.name) === true }));
  const marked = markedIn(inputs);
  return frame(
    action,
    <div class="narrow stack">
      {refusal !== undefined && <Problem user={reader} refusal={refusal} />}
      <Form
        action={actionHref(action.name)}
        token={reader.formToken}
        files={filesOf(action) !== undefined && !edits}
        hidden={set}
        class="card"
      >
        <div class="in stack">
          {edits ? (
            <SectionFields form={form} problems={refusal?.facts['problems'] as FieldProblem[]} />
          ) : (
            <>
              {marked === 'required' && <p class="help">Only the fields marked as required must be filled in.</p>}
              {inputs.map((field) => (
                <Input field={field} values={form.getAll(field.name)} marked={marked} sales={sales} />
              ))}
            </>
          )}
          <PartnerNames partners={partners} />
          {action.forms !== undefined && <Kept form={form} names={[...fixed, 'section', 'fixed', FILLED]} />}
          <p class="buttons">
            <button type="submit" class="main" name="step" value="preview">
              Preview
            </button>
          </p>
        </div>
      </Form>
    </div>,
    edits ? SECTIONS[form.get('section') as Section] : fixed.map((name) => form.get(name)).join(' · ') || undefined,
    asked,
  );
}

const Kept = ({ form, names }: { form: URLSearchParams; names: readonly string[] }) =>
  names.flatMap((name) => form.getAll(name).map((value) => <input type="hidden" name={name} value={value} />));

const Problem = ({ user, refusal }: { user: PageUser; refusal: Refusal }) => (
  <p class="problem" role="alert">
    {inOneLine(
      refusal.code === 'argument_invalid'
        ? `${refusal.facts['argument']} ${refusal.facts['reason']}.`
        : refusal.message,
    )}
    {refusal.remedies.length > 0 && (
      <>
        {' '}
        <Remedies remedies={refusal.remedies} user={user} partner={[]} tone="small" />
      </>
    )}
  </p>
);

const INPUT_MODES: Readonly<Partial<Record<Field['kind'], 'decimal' | 'numeric'>>> = {
  amount: 'decimal',
  whole: 'numeric',
};
type FieldProps = Readonly<{ field: Field; values: readonly string[] }>;

/** More values of a field than these are ticked boxes. */
const MOST_INPUTS = 3;

/** Empty inputs of each field with several values. */
const SPARE = 2;

/** Whichever fields are fewer are marked. A few optional fields need no explanation. */
type Marked = 'required' | 'optional';
function markedIn(fields: readonly Field[]): Marked {
  const [optional, required] = [false, true].map((is) => fields.filter((each) => each.required === is).length);
  return (optional as number) > Math.max(2, required as number) ? 'required' : 'optional';
}

const Mark = ({ field: { required }, marked }: { field: Field; marked: Marked }) =>
  required === (marked === 'required') ? <span class="count">{` ${marked}`}</span> : null;

type InputProps = FieldProps & Readonly<{ marked: Marked }>;

function Input({ field, values: given, marked, sales }: InputProps & Pick<ActionRequest, 'sales'>) {
  const { name, label, help, kind, choices = [], required, several } = field;
  const id = `field-${name}`;
  const sold = field.ofSales ? sales.filter(({ entry_id }) => given.includes(String(entry_id))) : [];
  const values = given.filter((value) => !sold.some(({ entry_id }) => value === String(entry_id)));
  const common = { name, 'aria-describedby': `${id}-help` };
  const filled = several
    ? [...values.filter((each) => each !== ''), ...Array<string>(SPARE).fill('')]
    : [values[0] ?? ''];
  if (kind === 'flag') {
    return (
      <div class="field">
        <label class="check">
          <input type="checkbox" value="yes" checked={values.length > 0} {...common} /> {label}
        </label>
        <Help id={id} help={help} />
      </div>
    );
  }
  if (kind === 'choice' && several) return <Choices {...{ field, values, marked }} />;
  if (several && values.length > MOST_INPUTS) {
    return <Choices field={{ ...field, choices: values }} values={values} marked={marked} />;
  }
  if (kind === 'file') return <Files {...{ field, values, marked }} />;
  return (
    <div class="field">
      <label for={id}>
        {label}
        <Mark field={field} marked={marked} />
      </label>
      {sold.map((row) => (
        <label class="check">
          <input type="checkbox" name={name} value={row.entry_id} checked /> <Sale row={row} />
        </label>
      ))}
      {kind === 'choice' ? (
        <select id={id} required={required} {...common}>
          {!required && <option value="" />}
          {choices.map((choice) => (
            <option value={choice} selected={values.includes(choice)}>
              {choice.replaceAll('_', ' ')}
            </option>
          ))}
        </select>
      ) : kind === 'lines' ? (
        <textarea id={id} required={required} rows={3} {...common}>
          {values[0]}
        </textarea>
      ) : (
        filled.map((value, at) => {
          const needed = required && at === 0 && sold.length === 0;
          const each = {
            ...{ id: at === 0 ? id : undefined, value, required: needed, autocomplete: 'off', ...common },
            'aria-label': at === 0 ? undefined : `${label}, another`,
          };
          if (kind === 'date') return <input type="date" {...each} />;
          const list = kind === 'partner' ? PARTNER_NAMES : undefined;
          return <input type="text" inputMode={INPUT_MODES[kind]} list={list} {...each} />;
        })
      )}
      <Help id={id} help={help} />
    </div>
  );
}

/** A sale in words, with the number of its row. */
const Sale = ({ row }: { row: RowToCorrect }) => (
  <span class="lines">
    <span class="line">
      {[row.enrollment_id ?? row.requote_id ?? row.quote_id, row.policy_id, row.accepted_on, ''].join(' · ')}
      <Money amount={row.invoice_amount} currency={row.currency} />
    </span>
    <span class="soft">Row {row.entry_id}</span>
  </span>
);

const Choices = ({ field, field: { name, label, help, kind, choices = [] }, values, marked }: InputProps) => (
  <fieldset class="field" aria-describedby={`field-${name}-help`}>
    <legend>
      {label}
      <Mark field={field} marked={marked} />
    </legend>
    <div class="choices">
      {choices.map((choice) => (
        <label class="check">
          <input type="checkbox" name={name} value={choice} checked={values.includes(choice)} />{' '}
          {kind === 'choice' ? choice.replaceAll('_', ' ') : choice}
        </label>
      ))}
    </div>
    <Help id={`field-${name}`} help={help} />
  </fieldset>
);

function Files({ field, values, marked }: InputProps) {
  const { name, label, help, required, several } = field;
  const id = `field-${name}`;
  const kept = values.flatMap((value) => {
    const file = fileOfText(value);
    return file === undefined
      ? []
      : [{ value, title: `${file.name}, ${groupThousands(String(Buffer.byteLength(file.base64, 'base64')))} bytes` }];
  });
  return (
    <div class="field">
      <label for={id}>
        {label}
        <Mark field={field} marked={marked} />
      </label>
      {kept.map(({ value, title }) => (
        <label class="check">
          <input type="checkbox" name={name} value={value} checked /> {title}
        </label>
      ))}
      <input
        id={id}
        type="file"
        name={name}
        multiple={several}
        required={required && kept.length === 0}
        aria-describedby={`${id}-help`}
      />
      <Help id={id} help={`${help} At most 4 MB.`} />
    </div>
  );
}

const Help = ({ id, help }: { id: string; help: string }) => (
  <p class="help" id={`${id}-help`}>
    {help}
  </p>
);

/**
 * Shows the action's effect and a button to confirm it. `changed` means that the effect differs from the effect shown
 * earlier.
 */
export function actionPreview(asked: ActionRequest, preview: Preview, changed = false): Screen {
  const { action, reader, form } = asked;
  const { refusal } = preview.report;
  const choices = (preview.report.blocks ?? []).flatMap(({ table }) => table?.choices?.flat() ?? []);
  const chosen = new Set(choices.map(({ field }) => field));
  return frame(
    action,
    <div class="narrow stack">
      {changed && (
        <p class="problem" role="alert">
          Nothing was done, because the figures of this preview changed before you confirmed it. Review the new preview.
        </p>
      )}
      <Effect preview={preview} />
      {refusal !== undefined && <Problem user={reader} refusal={refusal} />}
      <Form
        action={actionHref(action.name)}
        token={reader.formToken}
        files={filesOf(action) !== undefined}
        id={CONFIRM_FORM}
        hidden={{ shown: digestOf(preview) }}
      >
        <Kept
          form={form}
          names={[
            ...Object.keys(action.input.shape).filter((name) => !chosen.has(name)),
            ...['section', 'fixed', FILLED],
            ...(editsSection(form) ? [EDIT] : []),
          ]}
        />
        <p class="buttons">
          {refusal === undefined && (
            <button type="submit" class={action.danger ? 'main danger' : 'main'} name="step" value="confirm">
              {buttonOf(asked, preview)}
            </button>
          )}
          {chosen.size > 0 && (
            <button type="submit" name="step" value="preview">
              Preview with what is ticked
            </button>
          )}
          <button type="submit" name="step" value="edit">
            Change the form
          </button>
        </p>
      </Form>
    </div>,
    'nothing is done yet',
    asked,
  );
}

const buttonOf = (asked: ActionRequest, { report, approvers }: Preview) =>
  `${approvers.length > 0 ? 'Request approval: ' : ''}${report.button ?? titleNaming(asked)}`;

/** The action's title with the name of the thing that it is done to: `Void INV-2026-000012`. */
function titleNaming(asked: ActionRequest) {
  const { action, form } = asked;
  const [thing] = [...form.getAll('number'), ...form.getAll('paymentId')].filter((each) => each !== '');
  const title = partOf(asked)?.title ?? action.title;
  return title.replace(/\ban? (document|invoice|payment)\b/, (words, noun: string) =>
    thing === undefined ? words : `${noun === 'payment' ? 'payment ' : ''}${thing}`,
  );
}

type Link = Readonly<{
  name: string;
  href: string;
}>;

export const actionDone = (action: Action, reader: PageUser, report: FullReport, links: readonly Link[]): Screen =>
  ended({ action, reader }, report.attention === true ? 'Done, with something left to do' : 'Done', report, links);

export const actionAsked = (
  action: Action,
  reader: PageUser,
  { message, facts }: Refusal,
  links: readonly Link[],
): Screen =>
  ended({ action, reader }, `Approval requested: request ${facts['request_id']}`, { sentences: message }, links);

const ended = (
  { action, reader }: Pick<ActionRequest, 'action' | 'reader'>,
  title: string,
  { sentences, blocks = [], remedies = [] }: Pick<FullReport, 'sentences' | 'blocks' | 'remedies'>,
  links: readonly Link[],
): Screen =>
  frame(
    action,
    <div class="narrow stack">
      <Card title={title}>
        <ReportText text={sentences} />
      </Card>
      <Blocks blocks={blocks} />
      <p class="buttons">
        <Remedies remedies={remedies} user={reader} partner={[]} />
        {links.map(({ name, href }) => (
          <a class="button" href={href}>
            {name}
          </a>
        ))}
      </p>
    </div>,
  );
