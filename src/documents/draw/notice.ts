/** A panel that nobody should overlook: a title and what to do. */
import { Column } from './column.ts';
import type { Sheet } from './sheet.ts';

const PADDING_X = 12;
const PADDING_Y = 9;
const BAR = 3;

/** A part of a document whose height is known before it is drawn. */
export interface Part {
  readonly height: number;
  readonly draw: () => void;
}

export interface Notice {
  readonly title: string;
  /** The title's level among the headings around it. */
  readonly level: 'H2' | 'H3';
  readonly text: string;
}

export function noticePart(sheet: Sheet, { title, level, text }: Notice, after: number): Part {
  const column = new Column(sheet, sheet.width - 2 * PADDING_X);
  column.text(title, sheet.style('warning_strong'), { tag: level });
  column.text(text, sheet.style('warning'));
  const height = column.height + 2 * sheet.space(PADDING_Y);
  return {
    height: height + sheet.space(after),
    draw: () => {
      sheet.keepTogether(height);
      if (height <= sheet.room) {
        sheet.panel({ x: sheet.left, y: sheet.y, width: sheet.width, height }, 'warning_panel');
        sheet.panel({ x: sheet.left, y: sheet.y, width: BAR, height }, 'warning_rule');
      }
      sheet.y += sheet.space(PADDING_Y);
      column.draw(sheet.root, sheet.left + PADDING_X);
      sheet.y += sheet.space(PADDING_Y) + sheet.space(after);
    },
  };
}
