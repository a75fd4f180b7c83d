/** Draws a warning panel: a title, and what the reader should do. */

import { Notice } from './content.ts';
import { PageLayout } from './page.ts';
import { Column } from './text-column.ts';

const PADDING_X = 12;
const PADDING_Y = 9;
const BAR = 3;

/** A part of a document whose height is known before it is drawn. */
export type Part = Readonly<{
  height: number;
  draw: () => void;
}>;

/** `level` is the heading level of the title. */
export function noticePart(layout: PageLayout, { title, text }: Notice, level: 'H2' | 'H3', after: number): Part {
  const column = new Column(layout, layout.width - 2 * PADDING_X);
  column.text(title, layout.style('warning_strong'), { tag: level });
  column.text(text, layout.style('warning'));
  const height = column.height + 2 * layout.space(PADDING_Y);
  return {
    height: height + layout.space(after),
    draw: () => {
      layout.keepTogether(height);
      if (height <= layout.room) {
        layout.panel({ x: layout.left, y: layout.y, width: layout.width, height }, 'warning_panel');
        layout.panel({ x: layout.left, y: layout.y, width: BAR, height }, 'warning_rule');
      }
      layout.y += layout.space(PADDING_Y);
      column.draw(layout.root, layout.left + PADDING_X);
      layout.y += layout.space(PADDING_Y) + layout.space(after);
    },
  };
}
