/** JSON with exact numbers. Each number is read as its text, never as binary floating point. */

// Strings match first, so digits inside a string are not taken for a number. The pattern is exact for valid JSON (RFC
// 8259).
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** JSON.parse takes 15 ms for 30,000 nested brackets. PostgreSQL refuses more than a few thousand nested brackets. */
const DEEPEST = 100;
/** PostgreSQL refuses numbers with more than 131,072 digits. */
const LONGEST_NUMBER = 1000;
const LONGEST_EXPONENT = /[eE][+-]?\d{5}/;
/**
 * The maximum number of commas in a request body. No call needs even twenty commas. Reading and refusing 6,500 commas
 * took 40 ms.
 */
const MOST_COMMAS = 500;

/** Parses JSON, with each number as a string of its source text. Throws SyntaxError as JSON.parse does. */
export function parseExactJson(text: string): unknown {
  JSON.parse(text);
  return JSON.parse(text.replace(STRING_OR_NUMBER, (token) => (token.startsWith('"') ? token : `"${token}"`)));
}

/**
 * Parses JSON that comes from outside. Also throws SyntaxError for text that would take long to parse or that
 * PostgreSQL cannot store.
 */
export function parseExactJsonOfOthers(text: string): unknown {
  refuseDeep(text);
  for (const [token] of text.matchAll(STRING_OR_NUMBER)) if (!token.startsWith('"')) checkedNumber(token);
  return parseExactJson(text);
}

/** Throws SyntaxError if brackets are nested deeper than DEEPEST. Takes time linear in the length of the text. */
export function refuseDeep(text: string) {
  let opened = 0;
  for (let at = 0; at < text.length && opened <= DEEPEST; at += 1) if (isOpening(text.charCodeAt(at))) opened += 1;
  // A text with so few brackets cannot be nested too deep. For nearly all texts, the check ends here.
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

function refuseMany(text: string) {
  let commas = 0;
  for (let at = text.indexOf(','); at !== -1; at = text.indexOf(',', at + 1)) {
    commas += 1;
    if (commas > MOST_COMMAS) throw new SyntaxError(`it has more than ${MOST_COMMAS} commas`);
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const isOpening = (code: number) => code === 0x5b || code === 0x7b;

function checkedNumber(token: string) {
  if (token.length <= LONGEST_NUMBER && !LONGEST_EXPONENT.test(token)) return token;
  throw new SyntaxError(`a number has more than ${LONGEST_NUMBER} digits`);
}

const NAME_OR_BRACE = /("(?:[^"\\]|\\.)*")(\s*:)?|[{}]/g;

/**
 * Returns the first name that occurs twice in one object, or undefined. JSON.parse silently keeps the last value. The
 * text must be valid JSON.
 */
export function repeatedName(text: string) {
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
 * Returns the paths of texts with a lone surrogate, such as `"\ud800"`. Such texts are valid JSON, but neither
 * PostgreSQL nor UTF-8 can represent them. The depth of the value must have been checked.
 */
export function halfCharacters(value: unknown, path: readonly string[] = []): string[] {
  if (typeof value === 'string') return /\p{Cs}/u.test(value) ? [path.join('.')] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => halfCharacters(each, [...path, key]));
}

/** A number that keeps its text: `12.50` is written as `12.50`. */
export class ExactNumber {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

// A value that begins with U+0000 carries a marker of its type. Strings that begin with U+0000 or an escape are marked
// too.
const NUMBER = '\u0000number:';
const STRING = '\u0000string:';

/**
 * Parses an object of plain fields or of such objects, with each number as an ExactNumber. Returns lists unchanged. Throws SyntaxError as JSON.parse does, and for text that is too deep or too long for any call.
 */
export function parseExactFields(text: string): unknown {
  refuseDeep(text);
  refuseMany(text);
  JSON.parse(text);
  const marked = text.replace(STRING_OR_NUMBER, (token) => {
    if (token.startsWith('"\\')) return `"\\u0000string:${token.slice(1)}`;
    return token.startsWith('"') ? token : `"\\u0000number:${checkedNumber(token)}"`;
  });
  return unmarked(JSON.parse(marked));
}

const unmarkedName = (name: string) => (name.startsWith(STRING) ? name.slice(STRING.length) : name);

function unmarked(value: unknown): unknown {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [unmarkedName(key), unmarked(each)] as const));
  }
  if (typeof value !== 'string') return value;
  return value.startsWith(NUMBER) ? new ExactNumber(value.slice(NUMBER.length)) : unmarkedName(value);
}

/** Writes plain values as JSON. Each ExactNumber keeps its digits. */
export function writeExactJson(value: unknown): string {
  if (value instanceof ExactNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(writeExactJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).filter(([, each]) => each !== undefined);
  return `{${fields.map(([key, each]) => `${JSON.stringify(key)}:${writeExactJson(each)}`).join(',')}}`;
}
