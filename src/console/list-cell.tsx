/** A cell of a list's table. */
import { ComponentChildren } from 'preact';
import { cellOf, Column as Described, Download, Link, List, Mark, Value } from '#lists/list';
import { Amount } from '#money';
import { Instant, Marks, Money, Quiet } from './kit.tsx';

type CellProps = Readonly<{
  hrefOf: (...link: Link) => string;
  list: List;
  name: string;
  column: Described<unknown>;
  row: unknown;
  today: string;
  isFirst: boolean;
}>;

export function Cell({ list, name, column, row, today, hrefOf, isFirst }: CellProps) {
  const value = cellOf(list, name, row, today);
  if (value === null || value === '' || (Array.isArray(value) && value.length === 0)) return null;
  const link = column.to?.(row);
  if (value instanceof Amount) {
    const money = { amount: value.toString(), currency: value.currency, bare: column.bare };
    const shown = column.look === 'quiet' && link == null ? <Quiet {...money} /> : <Money {...money} />;
    return link == null ? shown : <a href={hrefOf(...link)}>{shown}</a>;
  }
  if (isAmounts(value)) {
    return (
      <span class="lines">
        {value.map((each) => (
          <span class="line">
            <Money amount={each.toString()} currency={each.currency} />
          </span>
        ))}
      </span>
    );
  }
  if (isDownloads(value)) {
    return value.map(({ text, page }) => (
      <span class="line">
        <a href={page} hx-boost="false" download>
          {text}
        </a>
      </span>
    ));
  }
  const shown =
    typeof value === 'object' ? (
      <Marks marks={value as readonly Mark[]} />
    ) : (
      <Looking look={column.look}>{inTime(value, column)}</Looking>
    );
  return link == null ? (
    shown
  ) : (
    <a
      class={isFirst ? rowClass(String(value)) : NUMBER.test(String(value)) ? 'number' : undefined}
      href={hrefOf(...link)}
    >
      {shown}
    </a>
  );
}

const NUMBER = /^[A-Z]+-\d{4}-\d+$/;

/** A document number stays on one line, whereas names may wrap. */
export const rowClass = (text: string): string => (text.includes(' ') ? 'row' : 'row number');

const isDownloads = (value: Value): value is readonly Download[] =>
  Array.isArray(value) && 'page' in (value[0] as object);

const isAmounts = (value: Value): value is readonly Amount[] => Array.isArray(value) && value[0] instanceof Amount;

const LOOKS = {
  soft: 'soft',
  quiet: 'quiet',
  wrap: 'soft wrap',
  fold: 'soft wrap',
  line: 'number',
  id: 'soft id',
} as const;

const FOLDED = 40;

function Looking({ look, children }: { look: Described<unknown>['look']; children: ComponentChildren }) {
  if (look === 'hash') return <code class="hash">{children}</code>;
  if (look === 'fold' && String(children).length > FOLDED) {
    return (
      <details class="small">
        <summary>{`${String(children).slice(0, FOLDED)}…`}</summary>
        {children}
      </details>
    );
  }
  return look === undefined ? children : <span class={LOOKS[look]}>{children}</span>;
}

function inTime(value: string | number, { type }: Described<unknown>): ComponentChildren {
  if (type === 'instant') return <Instant at={String(value)} />;
  if (type !== 'date' && type !== 'month') return value;
  return <span class="number">{String(value).slice(0, 10)}</span>;
}
