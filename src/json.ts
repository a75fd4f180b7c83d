/** JSON with exact numbers: every number is read as its own text and never passes through binary floating point. */

// Strings are matched first, so a digit inside one is never taken for a number. Exact on valid JSON (RFC 8259).
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Parses JSON with every number turned into a string of its source text. Throws SyntaxError as JSON.parse does. */
export function parseExactJson(text: string): unknown {
  JSON.parse(text);
  return JSON.parse(text.replace(STRING_OR_NUMBER, (token) => (token.startsWith('"') ? token : `"${token}"`)));
}

const NAME_OR_BRACE = /("(?:[^"\\]|\\.)*")(\s*:)?|[{}]/g;

/**
 * The first name that an object of this text gives twice, undefined where none does. JSON.parse keeps the last of the two
 * values and says nothing: of two amounts nobody could tell which was meant. For text that JSON.parse has read.
 */
export function repeatedName(text: string): string | undefined {
  const open: Set<string>[] = [];
  for (const [token, string, colon] of text.matchAll(NAME_OR_BRACE)) {
    if (token === '{') open.push(new Set());
    else if (token === '}') open.pop();
    else if (string !== undefined && colon !== undefined) {
      const name = JSON.parse(string) as string;
      const names = open.at(-1) as Set<string>;
      if (names.has(name)) return name;
      names.add(name);
    }
  }
  return undefined;
}

/**
 * The places of texts that hold half a character: `"\ud800"` is JSON, but neither PostgreSQL nor UTF-8 has it. For values
 * whose shape is checked already, and so no deeper than that.
 */
export function halfCharacters(value: unknown, path: readonly string[] = []): string[] {
  if (typeof value === 'string') return /\p{Cs}/u.test(value) ? [path.join('.')] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => halfCharacters(each, [...path, key]));
}

/** A number by its text: `12.50` is read and written as those five characters. */
export class ExactNumber {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

// A string that begins so would be taken for a number: it holds a character that no field of ours allows.
const MARK = '\u0000number:';

/**
 * Parses an object of plain fields, where a number can be told from a string: numbers become ExactNumber. Anything but
 * an object is given as it is. Throws SyntaxError as JSON.parse does.
 */
export function parseExactFields(text: string): unknown {
  JSON.parse(text);
  const marked = text.replace(STRING_OR_NUMBER, (token) =>
    token.startsWith('"') ? token : `"\\u0000number:${token}"`,
  );
  const value: unknown = JSON.parse(marked);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      key,
      typeof each === 'string' && each.startsWith(MARK) ? new ExactNumber(each.slice(MARK.length)) : each,
    ]),
  );
}

/** JSON text of plain values, with each ExactNumber as its own digits. */
export function writeExactJson(value: unknown): string {
  if (value instanceof ExactNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(writeExactJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).filter(([, each]) => each !== undefined);
  return `{${fields.map(([key, each]) => `${JSON.stringify(key)}:${writeExactJson(each)}`).join(',')}}`;
}
