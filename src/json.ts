/** JSON with exact numbers: every number is read as its own text and never passes through binary floating point. */

// Strings are matched first, so a digit inside one is never taken for a number. Exact on valid JSON (RFC 8259).
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Parses JSON with every number turned into a string of its source text. Throws SyntaxError as JSON.parse does. */
export function parseExactJson(text: string): unknown {
  JSON.parse(text);
  return JSON.parse(text.replace(STRING_OR_NUMBER, (token) => (token.startsWith('"') ? token : `"${token}"`)));
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
