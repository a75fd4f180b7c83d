/** Text from partners and settings, made safe for a subject, a header or a line of an e-mail. */

/**
 * A text as one line: control characters, line separators and controls that change the reading direction become spaces,
 * so that no name can end a header, start a new line in a letter, or show its letters in another order; invisible
 * direction marks are dropped.
 */
export function oneLine(text: string): string {
  return text
    .replace(/\p{Cs}/gu, '\u{fffd}')
    .replace(/[\u{61c}\u{200e}\u{200f}]/gu, '')
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\u{202a}-\u{202e}\u{2066}-\u{2069}\s]+/gu, ' ')
    .trim();
}
