/** The payer's name and account in the text of banks in the USA, which write them after labels. */
import { meaningful } from './statement.ts';

// The text has no separate fields. These labels occur in the addenda of ACH and Fedwire transactions. The first two
// banks write the name before a label, or the account after the name.
export const PAYER_NAME =
  /^(?=[^:=#]+\sDES\s*[:=])|\b(?:ORIG CO NAME|ORIGINATOR NAME|ORIG NAME|ORIGINATOR|ORIG|SENDER NAME|B\/O|ORG|DBNM)\s*[:=]/i;
export const PAYER_ACCOUNT =
  /\b(?:ORIG ID|ORIGINATOR ID|CO ID|COMPANY ID|ORIG ACCT|B\/O ACCT|DACT|ORIG\s*[:=][^:=#]*\sID)\s*[:=]/i;
const LABEL =
  '(?:ORIG|ORIGINATOR|INDN?|CO|COMPANY|DESC?|OBI|REF|TRN|SRF|TRACE|SEC|EED|EFF|ENTRY|DATE|TIME|TYPE|SEQ|ADDENDA|BNF|' +
  'RFB|ACCT|ID|SND|PMT|CREF|REMI|EREF|CRNM|CACT|DBNM|DACT)(?: [A-Z/]+){0,2}\\s*[:=#]';
const NEXT_LABEL = new RegExp(`\\s${LABEL}|[;|\\n]`, 'i');
const LABEL_FIRST = new RegExp(`^${LABEL}`, 'i');
/** A bank that cuts its text at a fixed length makes records of at least this length. */
const FULL_RECORD = 72;

/**
 * Returns the text after a label. If records that are joined with a space give a different text than records that are
 * joined without a space, a word may be cut. A word is certainly cut only if the bank fills its records.
 */
export function labelled({ pieces, raw }: Readonly<{ pieces: readonly string[]; raw: string }>, label: RegExp) {
  const apart = valueAfter(pieces.join(' '), label);
  const joined = valueAfter(pieces.join(''), label);
  if (apart === joined || joined === undefined) return apart;
  if (apart === undefined) return joined;
  // If the next record begins with a label, no word is cut.
  if (joined.startsWith(apart) && LABEL_FIRST.test(joined.slice(apart.length))) return apart;
  const isFull = raw
    .split('\n')
    .slice(0, -1)
    .every((physical) => physical.length >= FULL_RECORD);
  return isFull ? joined : undefined;
}

function valueAfter(text: string, label: RegExp) {
  const spaced = text.replace(/\s+/g, ' ');
  const found = label.exec(spaced);
  if (found === null) return undefined;
  // If two labels follow each other, the space before the second label must stay, because a label is not a value.
  const rest = ` ${spaced.slice(found.index + found[0].length)}`;
  return meaningful(rest.split(NEXT_LABEL)[0]);
}
