/** Plain text for people: tables, and lines of a certain width. For the terminal and for e-mails. */
import Table from 'cli-table3';

const NO_FRAME = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '  ',
};

/** A plain table; columns whose heading begins with '>' are aligned to the right. */
export function table(headings: readonly string[], rows: readonly (readonly (string | number | null)[])[]): string {
  const drawn = new Table({
    head: headings.map((heading) => heading.replace(/^>/, '')),
    colAligns: headings.map((heading) => (heading.startsWith('>') ? 'right' : 'left')),
    chars: NO_FRAME,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0, compact: true },
  });
  drawn.push(...rows.map((row) => row.map((cell) => printable(String(cell ?? '')))));
  return drawn
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

/** Text from outside can't move a terminal's cursor or change its colors. */
export function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, '\uFFFD');
}

/** Cuts a text to a width and shows that it did. */
export function short(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}

/** Breaks a text into lines of at most that many characters, at spaces where it can. */
export function wrapped(text: string, width: number, indent = ''): string[] {
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
