/** The columns of the line table: numbers get the width that they need, policies the rest and at least a minimum. */
import { Amount } from '../../money.ts';
import { type Month, monthName } from '../../month.ts';
import type { DocumentSnapshot, SnapshotLine } from '../snapshot.ts';
import type { PageLayout } from './page-layout.ts';
import type { Style } from './template.ts';
import { printable } from './text.ts';

export const AMOUNTS = ['spotPrice', 'partnerCut', 'invoiceAmount'] as const;
export type AmountName = (typeof AMOUNTS)[number];
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
const COLUMN_COUNT = 6;
const LEAST_POLICY_WIDTH = 96;
/** Extra width of amounts, if no policy name needs it. */
const MOST_BREATH = 26;
const BREATHING_COLUMNS = 3;
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

type SixPlaces = [Place, Place, Place, Place, Place, Place];

export interface Columns {
  readonly policy: Place;
  readonly what: Place;
  readonly count: Place;
  readonly spotPrice: Place;
  readonly partnerCut: Place;
  readonly invoiceAmount: Place;
  /** The size of numbers: that of the text, or smaller if they do not fit. */
  readonly numberSize: number;
}

export function layOutColumns(layout: PageLayout, snapshot: DocumentSnapshot, sections: readonly Section[]): Columns {
  const labels = layout.labels.lines;
  const widest = (texts: readonly string[], style: Style) =>
    Math.max(0, ...texts.map((text) => layout.measure({ text, style })));
  const headingWidth = (heading: string) => Math.min(MOST_HEADING_WIDTH, widest([heading], layout.style('column')));
  const amountRows: readonly Amounts[] = [...snapshot.lines, ...sections.map((section) => section.subtotal), snapshot];
  const amountTexts = (name: AmountName) => amountRows.map((row) => layout.locale.number(row[name]));
  const strong = layout.style('cell_strong');
  const numbers = [
    {
      heading: headingWidth(labels.count),
      texts: snapshot.lines.map((line) => layout.locale.number(String(line.count))),
    },
    { heading: headingWidth(labels.spotPrice), texts: amountTexts('spotPrice') },
    { heading: headingWidth(labels.partnerCut), texts: amountTexts('partnerCut') },
    { heading: headingWidth(labels.invoiceAmount[snapshot.document]), texts: amountTexts('invoiceAmount') },
  ].map(({ heading, texts }) => ({ heading, natural: widest(texts, strong) }));

  const whatWidth = Math.max(widest(Object.values(labels.kind), layout.style('cell')), headingWidth(labels.what));
  const widestName = widest([...policyNames(snapshot.lines).values(), labels.policy], layout.style('cell'));
  const leastPolicyWidth = Math.min(LEAST_POLICY_WIDTH, widestName);
  const forNumbers = layout.width - (COLUMN_COUNT - 1) * COLUMN_GAP - whatWidth - leastPolicyWidth;
  const widthsAt = (size: number) =>
    numbers.map(({ heading, natural }) => Math.max(heading, (natural * size) / strong.size));
  let size = strong.size;
  while (size > LEAST_SIZE && sum(widthsAt(size)) > forNumbers) size -= SHRINK_STEP;

  const natural = widthsAt(size);
  const free = forNumbers + leastPolicyWidth - sum(natural);
  const unneeded = Math.max(0, free - Math.max(LEAST_POLICY_WIDTH, widestName));
  const breath = Math.min(MOST_BREATH, unneeded / BREATHING_COLUMNS);
  const [count = 0, ...amounts] = natural;
  const numberWidths = [count, ...amounts.map((width) => width + breath)];
  const policyWidth = forNumbers + leastPolicyWidth - sum(numberWidths);
  const all = places(layout.left, [policyWidth, whatWidth, ...numberWidths]);
  const [policyAt, whatAt, countAt, spotPriceAt, partnerCutAt, invoiceAmountAt] = all as SixPlaces;
  return {
    policy: policyAt,
    what: whatAt,
    count: countAt,
    spotPrice: spotPriceAt,
    partnerCut: partnerCutAt,
    invoiceAmount: invoiceAmountAt,
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
