/** The strip of months with their billed amounts, in the same order of currencies. */

import { Money } from '#console/kit';
import { Month, monthName } from '#month';

type ShownMonth = Readonly<{
  month: Month;
  totals: readonly Readonly<{ currency: string; invoice_amount: string; rows: number }>[];
}>;

type MonthStripView = Readonly<{
  closed: readonly (ShownMonth & { readonly books_closed: boolean })[];
  open: readonly (ShownMonth & { readonly due: boolean })[];
  shown: Month | null;
  earlier: Month | null;
  isEarlier: boolean;
}>;

/** The currency with the most rows comes first. Amounts in different currencies cannot be ranked. */
function currenciesOf(months: readonly ShownMonth[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const { currency, rows } of months.flatMap(({ totals }) => totals)) {
    counts.set(currency, (counts.get(currency) ?? 0) + rows);
  }
  return [...counts]
    .sort(([one, rows], [other, more]) => more - rows || (one < other ? -1 : 1))
    .map(([currency]) => currency);
}

export function MonthStrip({ closed, open, shown, earlier, isEarlier }: MonthStripView) {
  const tiles = [
    ...closed.map((each) => ({
      ...each,
      ...(each.books_closed ? { tone: 'good', state: 'Books closed' } : { tone: 'warn', state: 'Billed, books open' }),
    })),
    ...open.map((each) => ({
      ...each,
      ...(each.due ? { tone: 'bad', state: 'Ready to close' } : { tone: 'running', state: 'Running' }),
    })),
  ];
  const currencies = currenciesOf(tiles);
  return (
    <div class="strip">
      <ol aria-label="Months">
        {earlier !== null && (
          <li>
            <a href={`/console/close/${earlier}`}>Earlier</a>
          </li>
        )}
        {tiles.map((tile) => (
          <MonthTile {...tile} current={tile.month === shown} currencies={currencies} />
        ))}
        {isEarlier && (
          <li>
            <a href="/console/close">Later</a>
          </li>
        )}
      </ol>
    </div>
  );
}

function MonthTile({
  month,
  current,
  tone,
  state,
  totals,
  currencies,
}: ShownMonth & Readonly<{ current: boolean; tone: string; state: string; currencies: readonly string[] }>) {
  const shown = currencies.flatMap((currency) => totals.find((each) => each.currency === currency) ?? []);
  return (
    <li>
      <a href={`/console/close/${month}`} aria-current={current ? 'page' : undefined}>
        <strong>{monthName(month, 'short')}</strong>
        {shown.length === 0 && <span class="total">No rows</span>}
        {shown.map(({ currency, invoice_amount }) => (
          <span class="total">
            <Money amount={invoice_amount} currency={currency} />
          </span>
        ))}
        <span class="state">
          <span class={`dot ${tone}`} />
          {state}
        </span>
      </a>
    </li>
  );
}
