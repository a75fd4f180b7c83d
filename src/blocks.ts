/**
 * What a report shows beside its sentences: tables, versions of a document beside each other, and sentences of their
 * own. The console draws the blocks, and the terminal prints them.
 */
import { Amount, moneyText } from '#money';
import { ToDo } from '#remedy';
import { printable, table, wrapped } from '#text-table';

/** A text with the page of the console that has more about it. */
type Linked = Readonly<{ text: string; page: string }>;
export type Cell = Amount | Linked | readonly Linked[] | string | number | null;

/** A value of a field with several values. It is chosen if the preview was made with it. */
export type Choice = Readonly<{ field: string; value: string; label: string; chosen: boolean }>;

export type Table = Readonly<{
  /** As those of text-table.ts: '>' aligns to the right, '~' may be shortened. */
  headings: readonly string[];
  rows: readonly (readonly Cell[])[];
  /** What a person may choose for each row before the action is confirmed: values of its input. */
  choices?: readonly (readonly Choice[])[];
  /** A remark about each row, under its first cell. */
  remarks?: readonly (Linked | string)[];
  /** What the console offers for each row. */
  remedies?: readonly (ToDo | null)[];
  /** Sums below the rows. */
  foot?: readonly (readonly Cell[])[];
}>;

export type Block = Readonly<{
  title: string;
  /** What the block says about the action. A warning is something to look at before the action is confirmed. */
  tone?: 'warn';
  lines?: readonly Cell[];
  /** The console shows it only when it is asked for: it is long, and the rest sums it up. */
  folded?: true;
  table?: Table;
  versions?: Versions;
  /** Labels with their values. */
  facts?: readonly (readonly [label: string, value: Cell])[];
}>;

/** Two versions of a thing, field by field. Null: the version does not have the field. */
export type Versions = Readonly<{
  names: readonly [before: string, after: string];
  rows: readonly Readonly<{ field: string; before: string | null; after: string | null }>[];
}>;

/** The fields of two versions, in the order of the first; a field that only the second has comes last. */
export function versionsOf(
  names: Versions['names'],
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): Versions {
  const fields = [...new Set([...before.keys(), ...after.keys()])];
  return {
    names,
    rows: fields.map((field) => ({ field, before: before.get(field) ?? null, after: after.get(field) ?? null })),
  };
}

export const partnerCell = (id: string, name: string): Linked => ({
  ...{ text: name, page: `/console/partners/${encodeURIComponent(id)}` },
});
export const documentCell = (number: string): Linked => ({ text: number, page: `/console/invoices/${number}` });

export const isNumber = (heading = '') => heading.startsWith('>');

/** A table as plain text. Several texts of a cell stand below each other. */
export const tableText = ({ headings, rows, foot = [] }: Table, width?: number) =>
  table(
    headings,
    [...rows, ...foot].flatMap((row) => {
      const cells = row.map((cell) =>
        Array.isArray(cell) ? (cell as Linked[]).map(({ text }) => text) : [cellText(cell)],
      );
      const lines = Math.max(...cells.map((each) => each.length));
      return Array.from({ length: lines }, (_, line) => cells.map((each) => each[line] ?? ''));
    }),
    width,
  );

export const cellText = (cell: Cell): string => {
  if (cell === null) return '';
  if (typeof cell !== 'object') return String(cell);
  if (cell instanceof Amount) return moneyText(cell.toString(), cell.currency);
  return [cell]
    .flat()
    .map(({ text }) => text)
    .join(', ');
};

/** The blocks as plain text. Of versions only what differs is printed. */
export const blocksText = (blocks: readonly Block[], width?: number): string =>
  blocks.map((block) => blockText(block, width)).join('\n\n');

function blockText({ title, lines = [], table: given, versions, facts = [] }: Block, width: number | undefined) {
  const most = Math.max(...facts.map(([label]) => label.length));
  const tables = [
    ...facts.flatMap(([label, value]) => labelled(label, cellText(value), most)),
    ...(given === undefined ? [] : [tableText(given, width), ...remarksText(given)]),
    ...(versions === undefined
      ? []
      : [table(['', ...versions.names.map((each) => `~${each}`)], differing(versions), width)]),
  ];
  return [`${title}:`, ...lines.flatMap((line) => indented(cellText(line))), ...tables].join('\n');
}

/** The remarks about the rows, each after its row's first cell and its first number. */
const remarksText = ({ headings, rows, remarks = [] }: Table) =>
  remarks.flatMap((remark, at) => {
    const number = rows[at]?.[headings.findIndex(isNumber)] ?? null;
    const of = [rows[at]?.[0] ?? null, number].map(cellText).filter(Boolean).join(', ');
    return cellText(remark) === '' ? [] : indented(`${of}: ${cellText(remark)}`);
  });

/** A label with a value that is wrapped at 80 columns. `most`: the length of the longest label. */
export const labelled = (label: string, value: string, most = 12) =>
  wrapped(printable(value), 76 - most).map((line, index) => `  ${(index === 0 ? label : '').padEnd(most)}  ${line}`);

const indented = (text: string) => wrapped(printable(text), 76, '  ').map((line) => `  ${line}`);

const differing = ({ rows }: Versions) =>
  rows.filter(({ before, after }) => before !== after).map(({ field, before, after }) => [field, before, after]);
