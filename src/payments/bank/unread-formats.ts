/**
 * Files that are not statements in a format that Reckoner reads. A format is recognized by content, because file names
 * vary. The refusal names the format, so that the user does not request the same file again.
 */
type UnreadFormat = Readonly<{
  format: string;
  /** A sentence that states what to import instead. */
  instead: string;
}>;

const STATEMENTS = 'Import the statements of this account (camt.053, BAI2, MT940 or OFX), or its transactions as CSV.';

const BY_HEAD: readonly (readonly [head: RegExp, format: string, instead: string])[] = [
  [/^$/, 'an empty file', 'Download it again from the bank.'],
  [
    new RegExp(`^${String.fromCharCode(0x1f, 0x8b)}`),
    'a file packed with gzip',
    'Unpack it, and import the file in it.',
  ],
  [/^%PDF-/, 'a PDF', STATEMENTS],
  [/^ÐÏ/, 'a spreadsheet', 'Save it as CSV.'],
  [/^(?:<!DOCTYPE html|<html)/i, 'a web page', 'Download the file itself from the bank, not the page that shows it.'],
  [/^!(?:Type|Account|Option|Clear)\b/i, 'a QIF file', STATEMENTS],
  [/^(?:UNA.{6}\s*)?UNB\W(?:[\s\S]*?UNH\W\w+\W([A-Z]{6}))?/, 'an EDIFACT file', STATEMENTS],
  [/^(?:<\?xml[^>]*>\s*)?<(?:\w+:)?schema\s/, 'an XML schema', STATEMENTS],
  [/^\{\\rtf/, 'a text document (RTF)', STATEMENTS],
];

/** `head` is the beginning of the file, without byte order mark and white space. */
export function unreadFormatOf(head: string): UnreadFormat | undefined {
  for (const [pattern, format, instead] of BY_HEAD) {
    const found = pattern.exec(head);
    // An EDIFACT file names its message, such as FINSTA.
    if (found !== null) return { format: found[1] === undefined ? format : `${format} (${found[1]})`, instead };
  }
  const message = head.startsWith('<')
    ? /iso:20022:tech:xsd:((?!head\.|camt\.05[234])[a-z]{4}\.\d{3})\b/.exec(head)?.[1]
    : undefined;
  return message === undefined
    ? undefined
    : {
        format: `${message.startsWith('a') ? 'an' : 'a'} ${message} message`,
        instead: `It is not a statement. ${STATEMENTS}`,
      };
}
