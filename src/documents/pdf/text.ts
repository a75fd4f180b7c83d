/** Prepares text for a page: replaces unprintable characters, and breaks lines to fit. */
import { isPrintable } from './added-fonts.ts';
import { Style } from './template.ts';

export type Run = Readonly<{
  text: string;
  style: Style;
}>;

export type Line = Readonly<{
  runs: readonly Run[];
  width: number;
  leading: number;
}>;

type Measure = (run: Run) => number;

/**
 * One line in the Unicode form NFC. Spaces and line breaks of every kind become single spaces; control characters, bidi
 * controls and other invisible ones are dropped.
 */
function normalized(text: string) {
  return text
    .replace(/[\t\n\v\f\r\u0085\u2028\u2029\p{Zs}]+/gu, ' ')
    .replace(/[\p{Cc}\p{Default_Ignorable_Code_Point}]/gu, '')
    .normalize('NFC')
    .replace(/ {2,}/g, ' ')
    .trim();
}

/** The characters that the fonts cannot print, each once, in order of appearance. */
export function unprintable(text: string) {
  return [...new Set(normalized(text))].filter((character) => !isPrintable(codePointOf(character)));
}

/** Words of ASCII with single spaces between them, which are printed unchanged. */
const PLAIN = /^(?:[!-~]+(?: [!-~]+)*)?$/;

/**
 * The text as it is printed. Characters without glyphs become their code points, `[U+682A U+5F0F]`, together with their
 * combining marks, and never empty boxes.
 */
export function printable(text: string) {
  if (PLAIN.test(text)) return text;
  let result = '';
  let hidden: string[] = [];
  const flush = () => {
    if (hidden.length > 0) result += `[${hidden.join(' ')}]`;
    hidden = [];
  };
  for (const character of normalized(text)) {
    const codePoint = codePointOf(character);
    const marksHidden = hidden.length > 0 && /^\p{M}$/u.test(character);
    if (isPrintable(codePoint) && !marksHidden) {
      flush();
      result += character;
    } else {
      hidden.push(`U+${codePoint.toString(16).toUpperCase().padStart(4, '0')}`);
    }
  }
  flush();
  return result;
}

const codePointOf = (character: string) => character.codePointAt(0) ?? 0;

// --- Lines ---

type Word = Readonly<{
  runs: readonly Run[];
  /** Whether a space separates it from the previous word. The parts of a broken word have none. */
  spaced: boolean;
}>;

/** Breaks runs into lines of at most this width, at spaces. A word is broken only if it is wider than a line. */
export function wrap(runs: readonly Run[], width: number, measure: Measure): Line[] {
  const whole = inOneLine(runs, width, measure);
  if (whole !== undefined) return [whole];
  const fits = (candidate: readonly Run[]) => widthOf(candidate, measure) <= width;
  const lines: Run[][] = [];
  let current: Run[] = [];
  for (const word of words(runs)) {
    const extended = joined(current, word);
    if (fits(extended)) {
      current = extended;
      continue;
    }
    if (current.length > 0) lines.push(current);
    const parts = fits(word.runs) ? [word.runs] : word.runs.flatMap((run) => broken(run, width, measure));
    lines.push(...parts.slice(0, -1).map((part) => [...part]));
    current = [...(parts.at(-1) ?? [])];
  }
  if (current.length > 0) lines.push(current);
  return lines.map((line) => ({
    runs: line,
    width: widthOf(line, measure),
    leading: Math.max(...line.map((run) => run.style.leading)),
  }));
}

const SPACES_TO_DROP = /^ | $| {2}/;

/** Fast, because most texts fit. */
function inOneLine(runs: readonly Run[], width: number, measure: Measure): Line | undefined {
  const [run] = runs;
  if (run === undefined || runs.length > 1 || run.text === '' || SPACES_TO_DROP.test(run.text)) return undefined;
  const natural = measure(run);
  return natural <= width ? { runs, width: natural, leading: run.style.leading } : undefined;
}

export function widthOf(runs: readonly Run[], measure: Measure) {
  return runs.reduce((total, run) => total + measure(run), 0);
}

/** Keeps words together that touch across runs, such as an amount and the comma after it. */
function words(runs: readonly Run[]): Word[] {
  const result: { runs: Run[]; spaced: boolean }[] = [];
  let spaced = true;
  for (const { text, style } of runs) {
    for (const part of text.split(/( )/)) {
      if (part === ' ') spaced = true;
      if (part === ' ' || part === '') continue;
      const last = result.at(-1);
      if (spaced || last === undefined) result.push({ runs: [{ text: part, style }], spaced });
      else last.runs.push({ text: part, style });
      spaced = false;
    }
  }
  return result;
}

function joined(line: readonly Run[], word: Word) {
  const last = line.at(-1);
  if (last === undefined) return [...word.runs];
  const result = [...line.slice(0, -1)];
  const pieces = [{ ...last, text: word.spaced ? `${last.text} ` : last.text }, ...word.runs];
  for (const piece of pieces) {
    const before = result.at(-1);
    if (before?.style === piece.style) result[result.length - 1] = { ...before, text: before.text + piece.text };
    else result.push(piece);
  }
  return result;
}

/** Characters after which a long name, address or link may be broken. */
const BREAK_AFTER = /[-/.,:;@_&=?+)\]]$/;
/** How full a line must be to be broken after such a character. */
const FULL_ENOUGH = 0.7;

/** The parts of a word that is too wide for a line. No hyphen is added, because it would falsify an account number. */
function broken(run: Run, width: number, measure: Measure) {
  const parts: Run[][] = [];
  let rest = clustersOf(run.text);
  while (rest.length > 0) {
    const count = partLength(rest, run.style, width, measure);
    parts.push([{ style: run.style, text: rest.slice(0, count).join('') }]);
    rest = rest.slice(count);
  }
  return parts;
}

const clustersOf = (text: string) => [...(text.match(/\P{M}\p{M}*|\p{M}+/gu) ?? [])];

/** How many clusters of a word fit on the line, or up to a good place to break; at least one. */
function partLength(clusters: readonly string[], style: Style, width: number, measure: Measure) {
  const fits = (count: number) => measure({ text: clusters.slice(0, count).join(''), style }) <= width;
  let low = 1;
  let high = clusters.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle - 1;
  }
  if (low === clusters.length) return low;
  const good = clusters.slice(0, low).findLastIndex((cluster) => BREAK_AFTER.test(cluster)) + 1;
  return good >= low * FULL_ENOUGH ? good : low;
}

const ELLIPSIS = '…';

/** Shortens a text to one line for running heads. Excess text is cut and marked with an ellipsis. */
export function shortened(run: Run, width: number, measure: Measure): Run {
  if (measure(run) <= width) return run;
  const clusters = clustersOf(run.text);
  const room = width - measure({ ...run, text: ELLIPSIS });
  const kept = clusters.slice(0, partLength(clusters, run.style, room, measure)).join('');
  return { ...run, text: kept.trimEnd() + ELLIPSIS };
}

/** The style in the largest font size, up to its own size, at which all texts fit their widths. */
export function shrunk(style: Style, texts: readonly { text: string; width: number }[], measure: Measure): Style {
  const scale = texts.reduce((least, { text, width }) => {
    const natural = measure({ text, style });
    return natural > width ? Math.min(least, width / natural) : least;
  }, 1);
  return scale === 1 ? style : scaled(style, scale);
}

/** Rounded down to a hundredth, so that fitting text still fits. */
export function scaled(style: Style, scale: number): Style {
  return { ...style, size: Math.floor(style.size * scale * 100) / 100 };
}
