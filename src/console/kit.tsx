import { ComponentChildren } from 'preact';
import { Mark } from '#lists/list';
import { Amount, groupThousands, Month, monthName } from '#values';

export type Tone = Mark['tone'];

type MoneyProps = Readonly<{
  amount: string;
  currency: string;
  signed?: boolean;
  /** Omits the currency, for columns whose heading names it. */
  bare?: boolean | undefined;
}>;

export function Money({ amount, currency, signed = false, bare = false }: MoneyProps) {
  const value = Amount.of(amount, currency);
  const sign = signed && value.isPositive() ? '+' : '';
  return (
    <span class={value.isNegative() ? 'negative' : undefined}>
      {`${sign}${groupThousands(value.toString()).replace('-', '\u2212')}`}
      {!bare && (
        <>
          {'\u00a0'}
          <span class="currency">{currency}</span>
        </>
      )}
    </span>
  );
}

/** A dash instead of zero, so that other amounts stand out. */
export const Quiet = (money: MoneyProps) => (/[1-9]/.test(money.amount) ? <Money {...money} /> : <None />);

/** Cards on narrow screens omit the cell. */
export const None = () => <span class="none">–</span>;

export const Chip = ({ tone = 'plain', children }: { tone?: Tone; children: ComponentChildren }) => (
  <span class={tone === 'plain' ? 'chip' : `chip ${tone}`}>{children}</span>
);

/** Separated by commas. */
export const Joined = ({ children }: { children: readonly ComponentChildren[] }) =>
  children.map((each, at) => (
    <>
      {at > 0 && ', '}
      {each}
    </>
  ));

export const Marks = ({ marks }: { marks: readonly Mark[] }) =>
  marks.map(({ text, tone }, at) => (
    <>
      {at > 0 && ' '}
      <Chip tone={tone}>{text}</Chip>
    </>
  ));

type GoProps = Readonly<{
  href: string;
  /** In a form of rows that can be selected: sends the selected rows along, so that the next page knows them. */
  sends?: boolean | undefined;
  'aria-current'?: 'page' | undefined;
  children: ComponentChildren;
}>;

export const Go = ({ href, sends, ...more }: GoProps) =>
  sends ? <button type="submit" class="link" name="go" value={href} {...more} /> : <a href={href} {...more} />;

export type Column<Row> = Readonly<{
  heading: string;
  /** For screen readers, if the heading is empty. */
  unseen?: string;
  number?: boolean;
  /** Sorts the list by this column, or reverses its order. */
  sort?: Readonly<{ href: string; sends?: boolean | undefined; now: 'ascending' | 'descending' | undefined }>;
  cell: (row: Row) => ComponentChildren;
}>;

type TableProps<Row> = Readonly<{
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  /** What is shown without rows. */
  nothing?: string | undefined;
  foot?: ComponentChildren;
}>;

/** Each row starts with a link, for the keys j, k and Enter. */
export function DataTable<Row>({ columns, rows, nothing = '', caption, foot }: TableProps<Row> & { caption: string }) {
  if (rows.length === 0 && foot === undefined) return <p class="nothing">{nothing}</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable areas must be reachable by keyboard
    <section class="scroll" tabIndex={0} aria-label={caption}>
      <table class="cards">
        {rows.length > 0 && (
          <thead>
            <tr>
              {columns.map(({ heading, unseen = 'Actions', number, sort }) => (
                <th scope="col" class={number ? 'num' : undefined} aria-sort={sort?.now}>
                  {heading === '' ? (
                    <span class="unseen">{unseen}</span>
                  ) : sort === undefined ? (
                    heading
                  ) : (
                    <Go href={sort.href} sends={sort.sends}>
                      {heading}
                    </Go>
                  )}
                </th>
              ))}
            </tr>
          </thead>
        )}
        <tbody>
          {rows.map((row) => (
            <tr>
              {columns.map(({ heading, number, cell }) => (
                <td class={number ? 'num' : undefined} data-label={heading || undefined}>
                  <div class="value">{cell(row)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
        {foot && <tfoot>{foot}</tfoot>}
      </table>
    </section>
  );
}

type CardProps = Readonly<{
  title: string;
  note?: ComponentChildren;
  actions?: ComponentChildren;
}>;

/** A card with a table, and with its children below the table. */
export const TableCard = <Row,>({
  title,
  note,
  actions,
  children,
  ...table
}: CardProps & TableProps<Row> & { children?: ComponentChildren }) => (
  <Card {...{ title, note, actions }} flush>
    <DataTable caption={title} {...table} />
    {children}
  </Card>
);

export function Card({
  title,
  note,
  actions,
  flush = false,
  children,
}: CardProps & {
  /** Removes the inner margin, for a card that contains a table. */
  flush?: boolean;
  children: ComponentChildren;
}) {
  return (
    <section class="card">
      <header>
        <h2>{title}</h2>
        {note && <p>{note}</p>}
        {actions && <div class="actions">{actions}</div>}
      </header>
      {flush ? children : <div class="in">{children}</div>}
    </section>
  );
}

export const Facts = ({ facts }: { facts: readonly (readonly [name: string, value: ComponentChildren])[] }) => (
  <dl class="facts">
    {facts.map(([name, value]) =>
      value === null || value === undefined || value === '' || value === false ? null : (
        <>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </>
      ),
    )}
  </dl>
);

/** Amounts in large type, each with its name. */
export const Figures = ({
  figures,
  children,
}: {
  figures: readonly (readonly [name: string, amount: ComponentChildren])[];
  children?: ComponentChildren;
}) => (
  <dl class="figures">
    {figures.map(([name, amount]) => (
      <div>
        <dt>{name}</dt>
        <dd>{amount}</dd>
      </div>
    ))}
    {children}
  </dl>
);

type Tab = Readonly<{
  name: string;
  href: string;
  current: boolean;
  count?: number;
}>;

export const Tabs = ({ label, tabs }: { label: string; tabs: readonly Tab[] }) => (
  <nav aria-label={label}>
    <ul class="tabs">
      {tabs.map(({ name, href, current, count }) => (
        <li>
          <a href={href} aria-current={current ? 'page' : undefined}>
            {name}
            {count !== undefined && (
              <>
                {' '}
                <span class="count">{count}</span>
              </>
            )}
          </a>
        </li>
      ))}
    </ul>
  </nav>
);

export type Question = Readonly<Record<string, string | number | null | undefined>>;

/** The path with the parameters that have a value. */
export function addressOf(path: string, question: Question): string {
  const given = Object.entries(question).filter(([, value]) => value !== undefined && value !== null && value !== '');
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text === '' ? path : `${path}?${text}`;
}

/** An input of the form of a report. */
export const DayInput = ({ label, name, value }: Readonly<Record<'label' | 'name' | 'value', string>>) => (
  <label class="field">
    {label}
    <input type="date" name={name} value={value} />
  </label>
);

export const MonthInput = ({
  months,
  value,
  name = 'month',
  label = 'Month',
}: {
  months: readonly Month[];
  value: Month;
  name?: string;
  label?: string;
}) => (
  <label class="field">
    {label}
    <select name={name}>
      {months.map((month) => (
        <option value={month} selected={month === value}>
          {monthName(month)}
        </option>
      ))}
    </select>
  </label>
);

/** Whether the figures of a report are proved (null: nothing is to be proved), and whether they may change. */
export const Verdict = ({
  good,
  preliminary,
  children,
}: {
  good: boolean | null;
  preliminary?: boolean | undefined;
  children: ComponentChildren;
}) => (
  <>
    <Chip tone={good === null ? 'plain' : good ? 'good' : 'bad'}>{children}</Chip>
    {preliminary && <Chip tone="warn">preliminary: books are open</Chip>}
  </>
);

export const Downloads = ({ path, question, of }: { path: string; question: Question; of?: string }) => (
  <>
    {(['csv', 'xlsx'] as const).map((format) => (
      <a class="button" href={addressOf(`${path}.${format}`, question)} hx-boost="false" download>
        {of === undefined ? format.toUpperCase() : `${of} (${format.toUpperCase()})`}
      </a>
    ))}
  </>
);

export const Pager = ({
  first,
  next,
  sends,
  names = ['First page', 'Next page'],
}: {
  first: string | null;
  next: string | null;
  sends?: boolean | undefined;
  names?: readonly [string, string];
}) =>
  first === null && next === null ? null : (
    <div class="pager">
      {first === null ? <span /> : <Go {...{ href: first, sends }}>{names[0]}</Go>}
      {next !== null && <Go {...{ href: next, sends }}>{names[1]}</Go>}
    </div>
  );

/** The parts of a total, such as deliveries by state. */
export function Meter({ parts, label }: { parts: readonly Readonly<{ tone: Tone; count: number }>[]; label: string }) {
  const total = parts.reduce((sum, { count }) => sum + count, 0);
  let at = 0;
  return (
    <svg class="meter" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label={label}>
      <rect class="base" width="100" height="6" rx="3" />
      {parts.map(({ tone, count }) => {
        const width = total === 0 ? 0 : (count * 100) / total;
        const x = at;
        at += width;
        return tone === 'plain' || width === 0 ? null : <rect class={tone} x={x} width={width} height="6" />;
      })}
    </svg>
  );
}

const PATHS = {
  done: 'M3.5 8.5l3 3 6-7',
  missing: 'M8 4v5M8 11.6v.4',
  wait: 'M8 4.5V8l2.5 1.5',
} as const;

export const Icon = ({ kind, tone }: { kind: keyof typeof PATHS; tone: Tone }) => (
  <svg width="16" height="16" viewBox="0 0 16 16" fill="none" aria-hidden="true">
    <circle cx="8" cy="8" r="7.25" stroke={`var(--${tone === 'plain' ? 'faint' : tone})`} stroke-width="1.2" />
    <path
      d={PATHS[kind]}
      stroke={`var(--${tone === 'plain' ? 'faint' : tone})`}
      stroke-width="1.6"
      stroke-linecap="round"
      stroke-linejoin="round"
    />
  </svg>
);

/** Polls a part of the page, with the element's id, while the work that it shows is under way. */
export const liveAt = (page: string, id: string) => ({
  'hx-get': page,
  'hx-trigger': 'every 2s',
  'hx-select': `#${id}`,
  'hx-swap': 'outerHTML',
  // Links inside the polled part must load whole pages.
  'hx-disinherit': '*',
});

/** Shows an ISO instant as `2026-10-01 10:07 UTC`. */
export const Instant = ({ at }: { at: string }) => (
  <time dateTime={at}>{`${at.slice(0, 16).replace('T', ' ')} UTC`}</time>
);

/** `first`: in the first cell of a row, for the keys j, k and Enter. */
export const InvoiceLink = ({ number, first = false }: { number: string; first?: boolean }) => (
  <a class={first ? 'row number' : 'number'} href={`/console/invoices/${number}`}>
    {number}
  </a>
);

export const PartnerLink = ({ id, children }: { id: string; children: ComponentChildren }) => (
  <a class="row" href={`/console/partners/${id}`}>
    {children}
  </a>
);

/** Document numbers do not break across lines. */
export const inOneLine = (text: string): ComponentChildren[] =>
  text
    .split(/\b([A-Z]{1,10}-\d{4}-\d{4,})\b/)
    .map((part, at) => (at % 2 === 1 ? <span class="number">{part}</span> : part));
