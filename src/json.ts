/** JSON with exact numbers: every number is read as its own text and never passes through binary floating point. */

// Strings are matched first, so a digit inside one is never taken for a number. It is exact for valid JSON (RFC 8259).
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** JSON.parse takes 15 ms for 30,000 nested brackets, and PostgreSQL stops at a few thousand. */
const DEEPEST = 100;
/** PostgreSQL has no numbers with more than 131,072 digits. */
const LONGEST_NUMBER = 1000;
const LONGEST_EXPONENT = /[eE][+-]?\d{5}/;
/** The most commas in a body. No call needs twenty, and 6,500 took 40 ms to read and refuse. */
const MOST_COMMAS = 500;

/** Parses JSON with every number turned into a string of its source text. Throws SyntaxError as JSON.parse does. */
export function parseExactJson(text: string): unknown {
  JSON.parse(text);
  return JSON.parse(text.replace(STRING_OR_NUMBER, (token) => (token.startsWith('"') ? token : `"${token}"`)));
}

/**
 * The same for text from outside: also throws SyntaxError for text that would take long or that the database cannot
 * hold.
 */
export function parseExactJsonOfOthers(text: string): unknown {
  refuseDeep(text);
  for (const [token] of text.matchAll(STRING_OR_NUMBER)) if (!token.startsWith('"')) checkedNumber(token);
  return parseExactJson(text);
}

/** Throws SyntaxError for text whose brackets are nested deeper than DEEPEST. Takes time linear in the length. */
export function refuseDeep(text: string): void {
  let opened = 0;
  for (let at = 0; at < text.length && opened <= DEEPEST; at += 1) if (isOpening(text.charCodeAt(at))) opened += 1;
  // Nearly every text has fewer brackets than that in all, including those in strings.
  if (opened <= DEEPEST) return;
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (inString && code === BACKSLASH) at += 1;
    else if (code === QUOTE) inString = !inString;
    else if (!inString && isOpening(code)) depth += 1;
    else if (!inString && (code === 0x5d || code === 0x7d)) depth -= 1;
    if (depth > DEEPEST) throw new SyntaxError(`it is nested more than ${DEEPEST} levels deep`);
  }
}

function refuseMany(text: string): void {
  let commas = 0;
  for (let at = text.indexOf(','); at !== -1; at = text.indexOf(',', at + 1)) {
    commas += 1;
    if (commas > MOST_COMMAS) throw new SyntaxError(`it has more than ${MOST_COMMAS} commas`);
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const isOpening = (code: number): boolean => code === 0x5b || code === 0x7b;

function checkedNumber(token: string): string {
  if (token.length <= LONGEST_NUMBER && !LONGEST_EXPONENT.test(token)) return token;
  throw new SyntaxError(`a number has more than ${LONGEST_NUMBER} digits`);
}

const NAME_OR_BRACE = /("(?:[^"\\]|\\.)*")(\s*:)?|[{}]/g;

/**
 * The first name that occurs twice in one object of this text; undefined if there is none. JSON.parse silently keeps
 * the last value, so of two amounts no one could tell which was meant. For text that JSON.parse has accepted.
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
 * The places of texts that contain half a character: `"\ud800"` is valid JSON, but neither PostgreSQL nor UTF-8 can
 * represent it. For values whose shape, and so depth, has been checked.
 */
export function halfCharacters(value: unknown, path: readonly string[] = []): string[] {
  if (typeof value === 'string') return /\p{Cs}/u.test(value) ? [path.join('.')] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => halfCharacters(each, [...path, key]));
}

/** A number kept as its text: `12.50` is read and written as those five characters. */
export class ExactNumber {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

// A marker of the type of a value that begins with U+0000. A string in the text that begins with U+0000 or any escape
// is marked as a string.
const NUMBER = '\u0000number:';
const STRING = '\u0000string:';

/**
 * Parses an object of plain fields. Numbers become ExactNumber, so that they differ from strings. Anything but an
 * object is returned unchanged. Throws SyntaxError as JSON.parse does, and for text too deep or too long for any call.
 */
export function parseExactFields(text: string): unknown {
  refuseDeep(text);
  refuseMany(text);
  JSON.parse(text);
  const marked = text.replace(STRING_OR_NUMBER, (token) => {
    if (token.startsWith('"\\')) return `"\\u0000string:${token.slice(1)}`;
    return token.startsWith('"') ? token : `"\\u0000number:${checkedNumber(token)}"`;
  });
  const value: unknown = JSON.parse(marked);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [unmarkedName(key), unmarked(each)] as const));
}

const unmarkedName = (name: string): string => (name.startsWith(STRING) ? name.slice(STRING.length) : name);

function unmarked(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  return value.startsWith(NUMBER) ? new ExactNumber(value.slice(NUMBER.length)) : unmarkedName(value);
}

/** JSON text of plain values, with each ExactNumber as its own digits. */
export function writeExactJson(value: unknown): string {
  if (value instanceof ExactNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(writeExactJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).filter(([, each]) => each !== undefined);
  return `{${fields.map(([key, each]) => `${JSON.stringify(key)}:${writeExactJson(each)}`).join(',')}}`;
}
