/**
 * Formats that banks deliver but that Reckoner cannot read. A format is recognized by content, because file names vary.
 * The refusal names the format, so that the user does not request the same file again.
 */
type UnreadFormat = Readonly<{
  format: string;
  /** A sentence that states what to request from the bank instead. */
  instead: string;
}>;

const EXPORT = 'Order camt.053 or BAI2 statements of this account from the bank, or export its transactions as CSV.';

const MESSAGES: Readonly<Record<string, string>> = {
  'camt.052': 'Its entries are interim. Order the camt.053 statements of this account from the bank.',
  'camt.054':
    'It has the details of batches. Order the camt.053 statements of this account from the bank, with details.',
};
const OTHER_MESSAGE = 'It is not a statement. Order the camt.053 statements of this account from the bank.';

/** The elements that identify a message without a namespace. */
const ELEMENTS: readonly (readonly [RegExp, string])[] = [
  [/<(?:\w+:)?BkToCstmrAcctRpt[\s>]/, 'camt.052'],
  [/<(?:\w+:)?BkToCstmrDbtCdtNtfctn[\s>]/, 'camt.054'],
];

/** `head` is the beginning of the file, without byte order mark and white space. */
export function unreadFormatOf(head: string): UnreadFormat | undefined {
  if (head.startsWith('PK\x03\x04')) {
    const instead = 'Unpack it and import the files in it one by one. Save a spreadsheet as CSV.';
    return { format: 'a zip archive', instead };
  }
  if (/^(?:OFXHEADER\s*:|(?:<\?xml[^>]*>\s*)?(?:<\?OFX\s|<OFX>))/i.test(head)) {
    return { format: 'an OFX file (also named QFX or QBO)', instead: EXPORT };
  }
  if (/^:20:/m.test(head) && /^:(?:25P?|28C?):/m.test(head)) {
    const interim = /^:34F:|^\{1:[^}]*\}\{2:[IO]942/m.test(head);
    return { format: interim ? 'an MT942 report' : 'an MT940 statement', instead: EXPORT };
  }
  const message = head.startsWith('<') ? messageOf(head) : undefined;
  if (message === undefined || message === 'camt.053') return undefined;
  return { format: `a ${message} message`, instead: MESSAGES[message] ?? OTHER_MESSAGE };
}

const messageOf = (head: string) =>
  /<(?:\w+:)?BkToCstmrStmt[\s>]/.test(head)
    ? 'camt.053'
    : (ELEMENTS.find(([element]) => element.test(head))?.[1] ??
      /iso:20022:tech:xsd:((?!head\.)[a-z]{4}\.\d{3})\b/.exec(head)?.[1]);
