/** The months as a strip, each with what it bills in one currency, which can be compared from month to month. */
import { type Month, monthName } from '../../month.ts';
import { Money } from '../kit.tsx';

interface ShownMonth {
  readonly month: Month;
  readonly totals: readonly { readonly currency: string; readonly invoice_amount: string }[];
}

interface Shown {
  readonly closed: readonly (ShownMonth & { readonly books_closed: boolean })[];
  readonly open: (ShownMonth & { readonly due: boolean }) | null;
  readonly shown: Month | null;
}

/** The currency that most months bill. Which amount is larger says nothing across currencies. */
function mainCurrency(months: readonly ShownMonth[]): string | undefined {
  const counts = new Map<string, number>();
  for (const { currency } of months.flatMap(({ totals }) => totals)) {
    counts.set(currency, (counts.get(currency) ?? 0) + 1);
  }
  const [main] = [...counts].sort(([one, times], [other, more]) => more - times || (one < other ? -1 : 1));
  return main?.[0];
}

export function MonthStrip({ closed, open, shown }: Shown) {
  const main = mainCurrency(open === null ? closed : [...closed, open]);
  return (
    <ol class="strip" aria-label="Months">
      {closed.map(({ month, books_closed, totals }) => (
        <MonthTile
          month={month}
          current={month === shown}
          tone={books_closed ? 'good' : 'warn'}
          state={books_closed ? 'Books closed' : 'Billed, books open'}
          totals={totals}
          main={main}
        />
      ))}
      {open !== null && (
        <MonthTile
          month={open.month}
          current={open.month === shown}
          tone={open.due ? 'bad' : 'running'}
          state={open.due ? 'Ready to close' : 'Running'}
          totals={open.totals}
          main={main}
        />
      )}
    </ol>
  );
}

function MonthTile({
  month,
  current,
  tone,
  state,
  totals,
  main,
}: {
  month: Month;
  current: boolean;
  tone: string;
  state: string;
  totals: ShownMonth['totals'];
  main: string | undefined;
}) {
  const total = totals.find(({ currency }) => currency === main) ?? totals[0];
  const others = totals.filter((each) => each !== total).map(({ currency }) => currency);
  return (
    <li>
      <a href={`/console/close/${month}`} aria-current={current ? 'page' : undefined}>
        <strong>{monthName(month, 'short')}</strong>
        <span class="total">
          {total === undefined ? 'No rows' : <Money amount={total.invoice_amount} currency={total.currency} />}
          {others.length > 0 && (
            <span class="count">{` and ${others.length <= 2 ? others.join(', ') : `${others.length} more`}`}</span>
          )}
        </span>
        <span class="state">
          <span class={`dot ${tone}`} />
          {state}
        </span>
      </a>
    </li>
  );
}
