/** Plain-text tables and wrapped lines, for the terminal and e-mails. */
import stringWidth from 'string-width';

type Row = readonly (string | number | null)[];

/**
 * Returns a plain table. The prefix '>' of a heading aligns its column to the right. The prefix '~' lets the column be
 * shortened if the table is wider than `width`.
 */
export function table(headings: readonly string[], all: readonly Row[], width = Number.POSITIVE_INFINITY) {
  const names = headings.map((heading) => heading.replace(/^[>~]/, ''));
  const rows = fitted(headings, names, all, width);
  const lines = [names, ...rows.map((row) => row.map((cell) => printable(String(cell ?? ''))))];
  const widths = names.map((_, at) => lines.reduce((most, line) => Math.max(most, stringWidth(line[at] ?? '')), 0));
  const cell = (text: string, at: number) => {
    const padding = ' '.repeat((widths[at] as number) - stringWidth(text));
    return headings[at]?.startsWith('>') ? padding + text : text + padding;
  };
  // A table package took minutes for 50,000 lines and ignored signals. For a cell that is not ASCII, string-width 8
  // takes 79 µs, and version 4 takes 5 µs.
  return lines.map((line) => line.map(cell).join(GAP).trimEnd()).join('\n');
}

export const EMAIL_TEXT_WIDTH = 78;

const GAP = '  ';
const LEAST_WIDTH = 8;

/** Shortens the columns with '~', the widest column first, until the table fits. */
function fitted(headings: readonly string[], names: readonly string[], rows: readonly Row[], width: number): Row[] {
  const widths = names.map((name, at) =>
    rows.reduce((most, row) => Math.max(most, String(row[at] ?? '').length), name.length),
  );
  const flexible = headings.flatMap((heading, at) => (heading.startsWith('~') ? [at] : []));
  for (
    let excess = widths.reduce((sum, each) => sum + each + GAP.length, -GAP.length) - width;
    excess > 0;
    excess -= 1
  ) {
    const [widest] = flexible.toSorted((one, other) => (widths[other] ?? 0) - (widths[one] ?? 0));
    if (widest === undefined || (widths[widest] ?? 0) <= LEAST_WIDTH) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return rows.map((row) =>
    row.map((cell, at) => (flexible.includes(at) ? short(String(cell ?? ''), widths[at] ?? LEAST_WIDTH) : cell)),
  );
}

/** Characters that move a terminal's cursor, change its colors or reorder text. */
const ACTING = /[\p{Cc}\u2028\u2029\u202A-\u202E\u2066-\u2069]/gu;

/** Makes a text from outside harmless to a terminal, on one line. */
export const printable = (text: string) => text.replace(ACTING, '\uFFFD');

/** Makes a whole output harmless to a terminal, and keeps its lines. */
export const printableLines = (text: string) =>
  text.replace(ACTING, (character) => (character === '\n' ? character : '\uFFFD'));

function short(text: string, width: number) {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}

/** Breaks a text into lines of at most `width` characters, at spaces if possible. */
export function wrapped(text: string, width: number, indent = '') {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) {
      lines[lines.length - 1] = `${last} ${word}`;
      continue;
    }
    for (let from = 0; from === 0 || from < word.length; ) {
      const begin = lines.length === 0 ? '' : indent;
      const part = word.slice(from, from + width - begin.length);
      lines.push(begin + part);
      from += Math.max(1, part.length);
    }
  }
  return lines;
}

/** Wraps longer lines. Continuation lines are indented to the column where the text after the label or dash begins. */
export function fitLines(text: string, width = Number.POSITIVE_INFINITY) {
  return text
    .split('\n')
    .flatMap((line) => {
      if (stringWidth(line) <= width) return [line];
      const label = /^(- |\s*\S+( \S+)? {2,})/.exec(line)?.[0] ?? '  ';
      return wrapped(line, width, ' '.repeat(label.length < 16 ? label.length : 2));
    })
    .join('\n');
}
