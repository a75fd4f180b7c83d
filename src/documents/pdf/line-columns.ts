/**
 * Computes the columns of the line table. Numbers get the width that they need, and policies the rest, but at least a
 * minimum.
 */
import { Table } from './content.ts';
import { PageLayout } from './page.ts';
import { Style } from './template.ts';

export const COLUMN_GAP = 12;
/** The columns policy, type and count. */
const COLUMNS_BEFORE_AMOUNTS = 3;
const LEAST_POLICY_WIDTH = 96;
/** Extra width for amounts, if no policy name needs it. */
const MOST_BREATH = 26;
/** A longer heading of a number column breaks into lines. */
const MOST_HEADING_WIDTH = 66;
const SHRINK_STEP = 0.25;
/** The smallest font size, at which any sum of a month fits. */
const LEAST_SIZE = 2;

export type Place = Readonly<{
  x: number;
  width: number;
}>;

type AmountColumn = Place &
  Readonly<{
    heading: string;
  }>;

export type Columns = Readonly<{
  policy: Place;
  what: Place;
  count: Place;
  amounts: readonly AmountColumn[];
  /** The font size of numbers, which is smaller than the text's if they do not fit. */
  numberSize: number;
}>;

export function layOutColumns(layout: PageLayout, { amounts, sections, total }: Table): Columns {
  const labels = layout.labels.lines;
  const widest = (texts: readonly string[], style: Style) =>
    Math.max(0, ...texts.map((text) => layout.measure({ text, style })));
  const headingWidth = (heading: string) => Math.min(MOST_HEADING_WIDTH, widest([heading], layout.style('column')));
  const lines = sections.flatMap((section) => section.lines);
  const amountRows = [...lines, ...sections.map((section) => section.subtotal), total];
  const strong = layout.style('cell_strong');
  const numbers = [
    { heading: labels.count, texts: lines.map(({ count }) => count) },
    ...amounts.map((heading, at) => ({ heading, texts: amountRows.map((row) => row.amounts[at] ?? '') })),
  ].map(({ heading, texts }) => ({ heading: headingWidth(heading), natural: widest(texts, strong) }));

  const whatWidth = Math.max(
    widest([...Object.values(labels.kind), ...lines.map(({ what }) => what)], layout.style('cell')),
    headingWidth(labels.what),
  );
  const widestName = widest([...lines.map(({ policy }) => policy), labels.policy], layout.style('cell'));
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
    amounts: amounts.map((heading, index) => ({ heading, ...(amountPlaces[index] as Place) })),
    numberSize: size,
  };
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);

function places(left: number, widths: readonly number[]): Place[] {
  let x = left;
  return widths.map((width) => {
    const place = { x, width };
    x += width + COLUMN_GAP;
    return place;
  });
}
