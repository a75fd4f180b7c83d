import { Block, Cell, cellText, isNumber, Table } from '#blocks';
import { oneLine } from './text.ts';

/** Blocks for the partial `_blocks` of the templates. */
export const blocksView = (blocks: readonly Block[]) =>
  blocks.map(({ title, lines = [], facts = [], table: { headings, rows, remarks = [], foot = [] } = NO_TABLE }) => {
    const cells = (row: readonly Cell[]) =>
      row.map((cell, at) => ({ text: oneLine(cellText(cell)), isNumber: isNumber(headings[at]) }));
    return {
      title,
      lines: lines.map((line) => oneLine(cellText(line))),
      facts: facts.map(([label, value]) => ({ label, value: oneLine(cellText(value)) })),
      headings: cells(headings.map((heading) => heading.replace(/^[>~]/, ''))),
      rows: [...rows, ...foot].map((row, at) => ({
        ...{ cells: cells(row), remark: oneLine(cellText(remarks[at] ?? null)), columns: String(headings.length) },
      })),
    };
  });

const NO_TABLE: Table = { headings: [], rows: [] };
