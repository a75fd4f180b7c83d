/**
 * A text as one line. Control characters, line separators and controls of the reading direction become spaces, so that
 * no name can end a header or reorder the letters. Invisible direction marks are dropped.
 */
export function oneLine(text: string) {
  return text
    .replace(/\p{Cs}/gu, '\u{fffd}')
    .replace(/[\u{61c}\u{200e}\u{200f}]/gu, '')
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\u{202a}-\u{202e}\u{2066}-\u{2069}\s]+/gu, ' ')
    .trim();
}
