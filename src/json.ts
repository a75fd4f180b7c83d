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
