/** Draws the head of a document: its issuer, its kind, the amount due, the addressee, and its facts. */

import { Logo } from '#config/logo';
import { Addressee, Headline, Names } from './content.ts';
import { PageLayout } from './page.ts';
import { filledWith } from './template.ts';
import { Run, scaled, shrunk, widthOf } from './text.ts';
import { Column, drawBeside } from './text-column.ts';

/** The left edge of the name and facts, as a fraction of the width. */
const RIGHT_COLUMN = 0.58;
const COLUMN_GAP = 24;
const FACT_LABEL_WIDTH = 82;
const FACT_SPACE = 2.4;
const AFTER_NAMES = 15;
const PANEL_PADDING_X = 14;
const PANEL_PADDING_Y = 11;
const PANEL_RADIUS = 4;
const HEADLINE_SPACE = 3;
const AFTER_PANEL = 16;
const AFTER_HEAD = 17;
const BEFORE_DETAILS = 3;
/** A logo keeps its proportions within these limits. */
const MOST_LOGO_WIDTH = 190;
const MOST_LOGO_HEIGHT = 44;
const AFTER_LOGO = 6;
/** The headline shrinks to this fraction of its size before it breaks into lines. */
const LEAST_HEADLINE = 0.75;

type Halves = Readonly<{
  left: Column;
  right: Column;
  rightX: number;
}>;

function halves(layout: PageLayout): Halves {
  const leftWidth = layout.width * RIGHT_COLUMN - COLUMN_GAP;
  const rightWidth = layout.width * (1 - RIGHT_COLUMN);
  return {
    left: new Column(layout, leftWidth),
    right: new Column(layout, rightWidth, FACT_LABEL_WIDTH),
    rightX: layout.left + layout.width * RIGHT_COLUMN,
  };
}

/** The name comes first in the reading order, although it is to the right of the issuer's. */
export function drawNames(layout: PageLayout, { title, number, issuer, logo, details }: Names) {
  const { left, right, rightX } = halves(layout);
  right.text(title, shrunk(layout.style('title'), [{ text: title, width: right.width }], layout.measure), {
    tag: 'H1',
  });
  right.text(number, layout.style('number'));
  if (logo !== null) addLogo(layout, left, logo, issuer);
  left.text(issuer, layout.style('issuer'), { before: AFTER_LOGO });
  for (const line of details) left.text(line, layout.style('small'));
  drawBeside(layout.root, layout, [
    { column: right, x: rightX },
    { column: left, x: layout.left },
  ]);
  layout.y += layout.space(AFTER_NAMES);
}

function addLogo(layout: PageLayout, column: Column, { content, width, height }: Logo, says: string) {
  // A logo gets at most one point per pixel, because enlarging a small image only blurs it.
  const scale = Math.min(MOST_LOGO_WIDTH / width, MOST_LOGO_HEIGHT / height, 1);
  const bytes = Buffer.from(content, 'base64');
  column.figure({ width: width * scale, height: height * scale }, says, (box) => layout.image(bytes, box));
}

export function drawHeadline(layout: PageLayout, headline: Headline) {
  const column = new Column(layout, layout.width - 2 * PANEL_PADDING_X);
  column.text(headlineRuns(layout, headline, column.width), layout.style('headline'), { tag: 'H2' });
  column.text(headline.sentence, layout.style('body'), { before: HEADLINE_SPACE });
  const height = column.height + 2 * layout.space(PANEL_PADDING_Y);
  layout.keepTogether(height);
  if (height <= layout.room) {
    layout.panel({ x: layout.left, y: layout.y, width: layout.width, height }, 'panel', PANEL_RADIUS);
  }
  layout.y += layout.space(PANEL_PADDING_Y);
  column.draw(layout.root, layout.left + PANEL_PADDING_X);
  layout.y += layout.space(PANEL_PADDING_Y) + layout.space(AFTER_PANEL);
}

/** The headline in one line, shrunk a little if necessary; otherwise in several lines. */
function headlineRuns(layout: PageLayout, headline: Headline, width: number): Run[] {
  const natural = headlineAt(layout, headline, 1);
  const scale = Math.min(1, width / widthOf(natural, layout.measure));
  return scale === 1 ? natural : headlineAt(layout, headline, Math.max(scale, LEAST_HEADLINE));
}

function headlineAt(layout: PageLayout, { label, amount, values }: Headline, scale: number): Run[] {
  const plain = scaled(layout.style('headline'), scale);
  const strong = scaled(layout.style('headline_strong'), scale);
  // If the headline has no amount, its words are emphasized.
  const inPlain = (text: string): Run => ({ text, style: label.includes('{amount}') ? plain : strong });
  const runs = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, inPlain(value)]));
  return filledWith(label, { ...runs, amount: { text: amount, style: strong } }, inPlain);
}

export function drawAddressee(layout: PageLayout, { heading, name, lines, taxId, facts }: Addressee) {
  const { left, right, rightX } = halves(layout);
  const body = layout.style('body');
  left.text(heading, layout.style('label'));
  left.text(name, layout.style('strong'), { before: 1 });
  for (const line of lines) left.text(line, body);
  if (taxId !== '') {
    left.text(`${layout.labels.facts.tax_id} ${taxId}`, body, { before: layout.space(BEFORE_DETAILS) });
  }
  for (const { label, value } of facts) {
    if (value !== '') right.fact(label, [[{ text: value, style: body }]], { before: layout.space(FACT_SPACE) });
  }
  drawBeside(layout.root, layout, [
    { column: left, x: layout.left },
    { column: right, x: rightX },
  ]);
  layout.y += layout.space(AFTER_HEAD);
}
