/** The columns of the line table: numbers get the width that they need, policies the rest and at least a minimum. */
import { Amount } from '../../money.ts';
import { type Month, monthName } from '../../month.ts';
import type { Presentation } from '../present.ts';
import type { DocumentSnapshot, SnapshotLine } from '../snapshot.ts';
import type { PageLayout } from './page-layout.ts';
import type { Style } from './template.ts';
import { printable } from './text.ts';

export type AmountName = 'spotPrice' | 'partnerCut' | 'invoiceAmount';
export type Amounts = Readonly<Record<AmountName, string>>;

/** The lines of one month. */
export interface Section {
  readonly name: string;
  /** The month is earlier than the document's. */
  readonly late: boolean;
  readonly lines: readonly SnapshotLine[];
  readonly subtotal: Amounts;
}

/** A section for each month, in the order in which the snapshot has them. */
export function sectionsOf(snapshot: DocumentSnapshot): Section[] {
  const months = [...new Set(snapshot.lines.map((line) => line.month))];
  return months.map((month) => sectionOf(snapshot, month));
}

function sectionOf(snapshot: DocumentSnapshot, month: Month): Section {
  const lines = snapshot.lines.filter((line) => line.month === month);
  const sum = (name: AmountName) =>
    lines
      .reduce((total, line) => total.plus(Amount.of(line[name], snapshot.currency)), Amount.zero(snapshot.currency))
      .toString();
  return {
    name: monthName(month),
    late: month < snapshot.month,
    lines,
    subtotal: { spotPrice: sum('spotPrice'), partnerCut: sum('partnerCut'), invoiceAmount: sum('invoiceAmount') },
  };
}

/** The policies' names; policies of the same name are shown with their ids. */
export function policyNames(lines: readonly SnapshotLine[]): ReadonlyMap<string, string> {
  const names = new Map(
    lines.map((line) => [line.policy_id, printable(line.policy_name) || printable(line.policy_id)]),
  );
  const isShared = (name: string) => [...names.values()].filter((other) => other === name).length > 1;
  return new Map([...names].map(([id, name]) => [id, isShared(name) ? `${name} (${printable(id)})` : name]));
}

// --- Widths ---------------------------------------------------------------------------------------------------------

export const COLUMN_GAP = 12;
/** Policy, type and count. */
const COLUMNS_BEFORE_AMOUNTS = 3;
const LEAST_POLICY_WIDTH = 96;
/** Extra width of amounts, if no policy name needs it. */
const MOST_BREATH = 26;
/** A longer heading of a number column breaks into lines. */
const MOST_HEADING_WIDTH = 66;
const SHRINK_STEP = 0.25;
/** The smallest size: no sum of a month is wider at this size, and the search ends here in any case. */
const LEAST_SIZE = 2;

export interface Place {
  /** The left edge. */
  readonly x: number;
  readonly width: number;
}

/** A column of amounts. */
export interface AmountColumn extends Place {
  readonly name: AmountName;
  readonly heading: string;
}

export interface Columns {
  readonly policy: Place;
  readonly what: Place;
  readonly count: Place;
  readonly amounts: readonly AmountColumn[];
  /** The size of numbers: that of the text, or smaller if they do not fit. */
  readonly numberSize: number;
}

export function layOutColumns(
  layout: PageLayout,
  snapshot: DocumentSnapshot,
  { showsSales, tax }: Pick<Presentation, 'showsSales' | 'tax'>,
  sections: readonly Section[],
): Columns {
  const labels = layout.labels.lines;
  const widest = (texts: readonly string[], style: Style) =>
    Math.max(0, ...texts.map((text) => layout.measure({ text, style })));
  const headingWidth = (heading: string) => Math.min(MOST_HEADING_WIDTH, widest([heading], layout.style('column')));
  const amountRows: readonly Amounts[] = [...snapshot.lines, ...sections.map((section) => section.subtotal), snapshot];
  const sales = [
    { name: 'spotPrice' as const, heading: labels.spotPrice },
    { name: 'partnerCut' as const, heading: labels.partnerCut },
  ];
  const amounts = [
    ...(showsSales ? sales : []),
    { name: 'invoiceAmount' as const, heading: labels.invoiceAmount[snapshot.document] },
  ];
  const strong = layout.style('cell_strong');
  const numbers = [
    { heading: labels.count, texts: snapshot.lines.map((line) => layout.locale.number(String(line.count))) },
    ...amounts.map(({ name, heading }) => ({
      heading,
      texts: amountRows.map((row) => layout.locale.number(row[name])),
    })),
  ].map(({ heading, texts }) => ({ heading: headingWidth(heading), natural: widest(texts, strong) }));

  const whatWidth = Math.max(
    widest(
      [...Object.values(labels.kind), ...snapshot.lines.map((line) => `${labels.kind[line.kind]}${tax.ofLine(line)}`)],
      layout.style('cell'),
    ),
    headingWidth(labels.what),
  );
  const widestName = widest([...policyNames(snapshot.lines).values(), labels.policy], layout.style('cell'));
  const leastPolicyWidth = Math.min(LEAST_POLICY_WIDTH, widestName);
  const gaps = (COLUMNS_BEFORE_AMOUNTS + amounts.length - 1) * COLUMN_GAP;
  const forNumbers = layout.width - gaps - whatWidth - leastPolicyWidth;
  const widthsAt = (size: number) =>
    numbers.map(({ heading, natural }) => Math.max(heading, (natural * size) / strong.size));
  let size = strong.size;
  while (size > LEAST_SIZE && sum(widthsAt(size)) > forNumbers) size -= SHRINK_STEP;

  const natural = widthsAt(size);
  const free = forNumbers + leastPolicyWidth - sum(natural);
  const unneeded = Math.max(0, free - Math.max(LEAST_POLICY_WIDTH, widestName));
  const breath = Math.min(MOST_BREATH, unneeded / amounts.length);
  const [countWidth = 0, ...amountWidths] = natural;
  const numberWidths = [countWidth, ...amountWidths.map((width) => width + breath)];
  const policyWidth = forNumbers + leastPolicyWidth - sum(numberWidths);
  const [policy, what, count, ...amountPlaces] = places(layout.left, [policyWidth, whatWidth, ...numberWidths]) as [
    Place,
    Place,
    Place,
    ...Place[],
  ];
  return {
    policy,
    what,
    count,
    amounts: amounts.map((each, index) => ({ ...each, ...(amountPlaces[index] as Place) })),
    numberSize: size,
  };
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);

function places(left: number, widths: readonly number[]): Place[] {
  let x = left;
  return widths.map((width) => {
    const place = { x, width };
    x += width + COLUMN_GAP;
    return place;
  });
}
