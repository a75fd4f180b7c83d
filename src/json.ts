/** JSON with exact numbers: every number is read as its own text and never passes through binary floating point. */

// Strings are matched first, so a digit inside one is never taken for a number. Exact on valid JSON (RFC 8259).
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Parses JSON with every number turned into a string of its source text. Throws SyntaxError as JSON.parse does. */
export function parseExactJson(text: string): unknown {
  JSON.parse(text);
  return JSON.parse(text.replace(STRING_OR_NUMBER, (token) => (token.startsWith('"') ? token : `"${token}"`)));
}
