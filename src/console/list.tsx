/** The page and files of a list of `lists/`, for the console and the partner's place. */
import { Field, fieldsOf, inputOfForm, readFields } from '#actions/fields';
import { ACTIONS } from '#actions/loaded';
import { withPartnerIds } from '#actions/partner-names';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { columnOf, isShown, Link, List, ListQuery, MOST_COUNTED, readSums, Sums, sheetOf } from '#lists/list';
import { Installation } from '#people/audit-events';
import { Period, Scope } from '#people/scope';
import { ToDo } from '#remedy';
import { capitalized, plural } from '#values';
import { ActionLink, actionHref, MoreActions, mayDo, Seer } from './action-link.tsx';
import { FilterInput } from './filter-input.tsx';
import { addressOf, Card, Column, DataTable, Downloads, Go, Money, Pager } from './kit.tsx';
import { labelsOf } from './labels.ts';
import { Cell } from './list-cell.tsx';
import { choiceAsked, idAsked, textAsked } from './parameters.ts';
import { PartnerNames, Partners, readPartnersFor } from './partner-names.tsx';

const PAGE = 50;

type Question = Readonly<Record<string, string>>;

export type ListView<Row = unknown> = Readonly<{
  list: List<Row>;
  question: Question;
  sort: string;
  today: string;
  rows: readonly Row[];
  sums: Sums;
  /** The partners to choose from in a filter. */
  partners: Partners;
  /** The key of this page's last row, or null on the last page. */
  next: string | null;
  /** The selected rows, also those of other pages. */
  ticked: readonly string[];
}>;

export type ListContext = Readonly<{
  scope: Scope;
  period: Period;
  today: string;
  context: Installation;
}>;

/** The address of a page has the selected rows, and browsers send it up to three times. */
const MOST_TICKED = 200;

/** `rows` are those of a page that is selected whole. */
function tickedIn<Row>({ ticks, one }: List<Row>, asked: URLSearchParams, rows: readonly Row[] = []): string[] {
  const of = (row: Row) => ticks?.of(row) ?? [];
  const ticked = ticks === undefined ? [] : [...new Set([...asked.getAll(ticks.field), ...rows.flatMap(of)])];
  if (ticked.length > MOST_TICKED) {
    const reason = `are too many: select at most ${MOST_TICKED}`;
    throw refuse('argument_invalid', { argument: `Selected ${one}s`, value: String(ticked.length), reason });
  }
  return ticked;
}

/** Where a button of a list leads, with the selected rows. */
export function listTarget(list: List, asked: URLSearchParams): string | undefined {
  const to = asked.get('go');
  if (to === null || list.ticks === undefined) return undefined;
  const isOurs = (path: string) => path.startsWith('/console/');
  // Only a path is parsed: it always can be, and what leads out of it is removed.
  const { pathname, search } = new URL(isOurs(to) ? to : '/', 'http://localhost');
  if (!isOurs(pathname)) throw refuse('page_unknown', { path: to });
  const { field: own, fields = {} } = list.ticks;
  const field = fields[pathname.slice(pathname.lastIndexOf('/') + 1)] ?? own;
  const ticked = new URLSearchParams(tickedIn(list, asked).map((value) => [field, value])).toString();
  return [pathname + search, ticked].filter(Boolean).join(search === '' ? '?' : '&');
}

const idOfRow = (value: string | undefined) => idAsked('after', value);

const askedOf = async (
  tx: Transaction,
  { filters, ...list }: List,
  question: Question,
  { scope, period, today, context }: ListContext,
): Promise<ListQuery<unknown>> => ({
  filter: await withPartnerIds(
    tx,
    filters,
    readFields(filters, inputOfForm(filters, new URLSearchParams(question)), labelsOf({ input: filters })),
    scope,
  ),
  sort: choiceAsked('sort', question['sort'], list.sorts) ?? list.sorts[0],
  after: (list.keyed === 'text' ? textAsked : idOfRow)(question['after'])?.toString() ?? null,
  ...{ scope, period, today, context, limit: PAGE + 1 },
});

const namesInViews = ({ views = [] }: List) => [...new Set(views.flatMap(([, filter]) => Object.keys(filter)))];

/** If no filter is given, a list shows its first view. */
function beginning(list: List, question: Question) {
  const [[, first] = ['', {}]] = list.views ?? [];
  return question['view'] || namesInViews(list).some((name) => question[name]) ? question : { ...question, ...first };
}

export async function readList<Row>(
  tx: Transaction,
  list: List<Row>,
  { [list.ticks?.field ?? '']: _, tick, ...given }: Question,
  { asked: parameters = new URLSearchParams(), ...seen }: ListContext & { readonly asked?: URLSearchParams },
): Promise<ListView<Row>> {
  const begun = beginning(list, given);
  const question = { ...begun, ...(await list.defaults?.(tx, await askedOf(tx, list, begun, seen))) };
  const asked = await askedOf(tx, list, question, seen);
  const found = await list.read(tx, asked);
  const rows = found.slice(0, PAGE);
  const last = rows.at(-1);
  return {
    ...{ list, question, rows, sort: asked.sort, today: seen.today },
    // Some partners may have nothing in the months that the user may see.
    partners: await readPartnersFor(tx, list.filters, seen.period === null ? seen.scope : []),
    sums: await readSums(tx, list, asked, asked.after === null && found.length <= PAGE ? found : null),
    ticked: tickedIn(list, parameters, tick === 'page' ? rows : []),
    next: found.length > PAGE && last !== undefined ? (list.key?.(last) ?? null) : null,
  };
}

/** All rows that match. The columns are those of the command's file. */
export async function readListSheet(tx: Transaction, list: List, question: Question, seen: ListContext) {
  const asked = { ...(await askedOf(tx, list, question, seen)), sort: list.sorts[1], after: null, limit: null };
  return sheetOf(list, await list.read(tx, asked), seen.today);
}

type ListProps = Readonly<{
  view: ListView;
  path: string;
  face: readonly string[];
  hrefOf: (...link: Link) => string;
  /** The user whose permissions decide which remedies are links. */
  user?: Seer;
  /** Whether rows can be selected. The links then send the selected rows. */
  sends?: boolean | undefined;
  /** In a form that refuses repeated fields: each row has a field of its own, `tick:` and its value. */
  singly?: boolean | undefined;
}>;

/** Before the value of a row, in the name of its field. */
export const TICK = 'tick:';

export const consoleHref = (place: string, at: Link[1]) =>
  typeof at === 'string' ? `/console/${place}/${encodeURIComponent(at)}` : addressOf(`/console/${place}`, at);

export function ListPage({ view, path, user }: { view: ListView; path: string; user: Seer }) {
  const { list, rows, sums, next } = view;
  const fields = fieldsOf(list.filters);
  const isPart = rows.length !== sums.count;
  const actions = actionsOf(view, user);
  const sends = actions.length > 0;
  const page = (
    <>
      <Filters {...{ view, path, fields, sends }} />
      <Views {...{ view, path, sends }} />
      <Card
        title={sums.count === null ? `More than ${MOST_COUNTED} ${list.one}s` : plural(sums.count, list.one)}
        note={isPart && `${rows.length} on this page${next === null ? ', the last' : ''}`}
        flush
      >
        <ListTable
          {...{ view, path, user, sends, face: list.page ?? [], hrefOf: consoleHref }}
          nothing={nothingOf(view, fields)}
        />
        {sends && <Ticked {...{ view, path, actions }} />}
        <ListPager {...{ view, path, sends }} />
      </Card>
    </>
  );
  return sends ? <form action={path}>{page}</form> : page;
}

function nothingOf({ list: { one }, question }: ListView, fields: readonly Field[]) {
  if (question['after']) return `There are no more ${one}s.`;
  return fields.every(({ name }) => !question[name])
    ? `There are no ${one}s yet.`
    : `No ${one}s match. Change the filter.`;
}

export const ListDownloads = ({ view, path }: { view: ListView; path: string }) => (
  <Downloads path={path} question={{ ...view.question, after: undefined, sort: undefined, view: undefined }} />
);

type PartProps = Pick<ListProps, 'view' | 'path' | 'sends'>;

export const ListPager = ({ view: { question, next }, path, sends }: PartProps) => (
  <Pager
    sends={sends}
    first={question['after'] ? addressOf(path, { ...question, after: undefined }) : null}
    next={next === null ? null : addressOf(path, { ...question, after: next })}
  />
);

/** The inputs beside the button. The others are folded. */
const MOST_INPUTS = 6;

/** The form of a list's filters. A filter that is shown as tabs has no input. */
function Filters({
  view: { list, question, partners },
  path,
  fields,
  sends,
}: PartProps & { fields: readonly Field[] }) {
  const inTabs = namesInViews(list);
  const kept = [...inTabs, 'view', 'sort'].filter((name) => question[name]);
  const inputs = fields.filter(({ name }) => !inTabs.includes(name));
  const more = inputs.slice(MOST_INPUTS);
  const input = (field: Field) => <FilterInput field={field} value={question[field.name]} />;
  const form = (
    <>
      {inputs.slice(0, MOST_INPUTS).map(input)}
      {more.length > 0 && (
        <details open={more.some(({ name }) => question[name])}>
          <summary>More filters</summary>
          <div class="filters">{more.map(input)}</div>
        </details>
      )}
      <PartnerNames partners={partners} />
      {kept.map((name) => (
        <input type="hidden" name={name} value={question[name]} />
      ))}
      <button type="submit">Filter</button>
    </>
  );
  if (inputs.length === 0) return null;
  return sends ? (
    <div class="filters">{form}</div>
  ) : (
    <form class="filters" action={path}>
      {form}
    </form>
  );
}

function Views({ view: { list, question }, path, sends }: PartProps) {
  const { views = [] } = list;
  const names = namesInViews(list);
  const all = Object.keys(views[0]?.[1] ?? {}).length === 0 ? undefined : 'all';
  const isCurrent = (filter: Question) => names.every((name) => (question[name] ?? '') === (filter[name] ?? ''));
  const empty = Object.fromEntries(names.map((name) => [name, undefined]));
  return views.length === 0 ? null : (
    <ul class="tabs">
      {views.map(([name, filter]) => (
        <li>
          <Go
            sends={sends}
            href={addressOf(path, {
              ...{ ...question, ...empty, ...filter, after: undefined },
              view: Object.keys(filter).length === 0 ? all : undefined,
            })}
            aria-current={isCurrent(filter) ? 'page' : undefined}
          >
            {name}
          </Go>
        </li>
      ))}
    </ul>
  );
}

const actionsOf = ({ list: { ticks }, question }: ListView, user: Seer) =>
  [...(ticks?.within && question[ticks.within.filter] ? ticks.within.actions : []), ...(ticks?.actions ?? [])].filter(
    ({ action }) => mayDo(user, action, ticks?.ofLedger ? null : []),
  );

/** Ticked rows go to an action, whose preview shows the effect on all of them. */
function Ticked({ view, path, actions }: Pick<ListProps, 'view' | 'path'> & { actions: readonly ToDo[] }) {
  const { list, question, rows, ticked } = view;
  const { field = '', within, pdfs, of } = list.ticks ?? {};
  const here = new Set(rows.map((row) => of?.(row)));
  const elsewhere = ticked.filter((each) => !here.has(each));
  const known = (of: ToDo) =>
    within?.actions.includes(of) ? { ...of.input, [within.field]: question[within.filter] ?? '' } : of.input;
  return (
    <p class="buttons in">
      <button type="submit" class="small" name="tick" value="page">
        Select this page
      </button>
      {actions.map((each) => (
        <button
          type="submit"
          class={ACTIONS.get(each.action)?.danger ? 'small danger' : 'small'}
          name="go"
          value={actionHref(each.action, known(each))}
        >
          {each.label}
        </button>
      ))}
      {pdfs && (
        <button type="submit" class="small" formaction={`${path}/pdfs.zip`} data-download>
          Download PDFs
        </button>
      )}
      {elsewhere.map((value) => (
        <input type="hidden" name={field} value={value} />
      ))}
      {elsewhere.length > 0 && (
        <span class="soft">
          {`${plural(elsewhere.length, list.one)} selected on other pages. `}
          <a href={addressOf(path, question)}>Clear the selection</a>
        </span>
      )}
    </p>
  );
}

export function ListTable({
  view,
  path,
  face,
  hrefOf,
  user,
  sends,
  singly,
  nothing,
}: ListProps & { readonly nothing?: string }) {
  const { list, question, sort, rows, ticked, today } = view;
  const totals = view.sums.totals.filter((total) => face.some((name) => total[name] !== undefined));
  const isPart = rows.length !== view.sums.count;
  const shown = face.filter(
    (name) => isShown(list, name, rows, today) || totals.some((total) => total[name]?.isZero() === false),
  );
  const columns = shown.map((name, at): Column<unknown> => {
    const column = columnOf(list, name);
    // The largest amounts come first.
    const sorts = (column.type === 'amount' ? [`-${name}`, name] : [name, `-${name}`]).filter((each) =>
      (list.sorts as readonly string[]).includes(each),
    );
    const other = sorts.find((each) => each !== sort);
    return {
      ...{ heading: column.heading, unseen: capitalized(name) },
      number: column.type === 'amount',
      ...(other !== undefined && {
        sort: {
          sends,
          href: addressOf(path, { ...question, sort: other, after: undefined }),
          now: sort === name ? 'ascending' : sort === `-${name}` ? 'descending' : undefined,
        },
      }),
      cell(row) {
        const cell = <Cell {...{ list, name, column, row, today, hrefOf }} isFirst={at === 0} />;
        return at === 0 && (sends || singly) ? (
          <span class="number">
            <Tick {...{ list, row, ticked, singly }} />
            {cell}
          </span>
        ) : (
          cell
        );
      },
    };
  });
  const all = list.remedies === undefined || user === undefined ? columns : [...columns, remediesFor(list, user)];
  const foot = totals.map((total) => (
    <tr>
      {all.map(({ heading, number }, at) => {
        const name = shown[at] ?? '';
        const sum = total[name];
        return (
          <td class={number ? 'num' : undefined} data-label={sum && heading}>
            {at === 0 && (isPart ? 'Total of all pages' : 'Total')}
            {name === 'currency' && Object.values(total)[0]?.currency}
            {sum && <Money amount={sum.toString()} currency={sum.currency} bare={columnOf(list, name).bare} />}
          </td>
        );
      })}
    </tr>
  ));
  return (
    <DataTable
      columns={all}
      rows={rows}
      nothing={nothing}
      caption={list.title}
      foot={foot.length > 0 && rows.length > 0 ? foot : undefined}
    />
  );
}

const remediesFor = (list: List, user: Seer): Column<unknown> => ({
  heading: '',
  cell(row) {
    const remedies = list.remedies?.(row) ?? [];
    const [first] = remedies;
    if (remedies.length > 1) {
      const actions = remedies.map(({ label, action, ...each }) => ({ ...each, name: label, action: action }));
      return <MoreActions user={user} actions={actions} label="Manage" />;
    }
    return (
      first && (
        <ActionLink user={user} action={first.action} partner={first.partner} input={first.input} tone="small">
          {first.label}
        </ActionLink>
      )
    );
  },
});

function Tick({
  list: { ticks },
  row,
  ticked,
  singly,
}: Pick<ListView, 'list' | 'ticked'> & Pick<ListProps, 'singly'> & { row: unknown }) {
  const value = ticks?.of(row) ?? null;
  if (ticks === undefined || value === null) return null;
  const [name, checked] = [singly ? `${TICK}${value}` : ticks.field, ticked.includes(value)];
  return <input type="checkbox" class="tick" aria-label={`Select ${value}`} {...{ name, value, checked }} />;
}
