/** The text of an MT940 entry (`:86:`), in the forms that banks agreed on. */
import { compact, joined, meaningful } from './statement.ts';

type EntryText = Readonly<{
  text: string;
  references: readonly (readonly [field: string, text: string | undefined])[];
  particulars: readonly (readonly [field: string, text: string | undefined])[];
  name: string | undefined;
  behind: readonly string[];
  account: string | undefined;
  /** The bank's code of the business transaction, such as `166`. */
  code: string;
  isReturn: boolean;
  returnCode: string | undefined;
}>;

/** Codes of returned direct debits and of returned credit transfers in Germany. */
const RETURNS = new Set(['108', '109', '159']);

export function readEntryText(lines: readonly string[], supplementary: readonly string[]): EntryText {
  const whole = lines.join('');
  const [, code, separator] = /^(\d{3})([?<>~|@^])(?=\d\d)/.exec(whole) ?? [];
  const particulars = particularsIn(`${supplementary.join('')}\n${whole}`);
  if (code !== undefined && separator !== undefined) return numbered(whole.slice(3), code, separator, particulars);
  if (SLASHED.test(whole)) return slashed(whole, particulars);
  const spaced = joined(lines.map((each) => each.trim()));
  return {
    ...{ text: spaced, particulars, name: undefined, behind: [], account: undefined, code: '' },
    // A document number may continue on the next line.
    references: [['text', spaced], ...(lines.length > 1 ? [['text', whole] as const] : [])],
    ...{ isReturn: false, returnCode: undefined },
  };
}

const AMOUNTS = { OCMT: 'instructed amount', EXCH: 'exchange rate', CHGS: 'charges' } as const;

const particularsIn = (text: string) =>
  [...text.matchAll(/\/(OCMT|EXCH|CHGS)\/\/?([^/\n]+)/g)].map(
    ([, tag, value]) => [AMOUNTS[tag as keyof typeof AMOUNTS], value] as const,
  );

/** `166?00CREDIT?20EREF+…?32name`: subfields with numbers. Remittance is in 20 to 29 and 60 to 63. */
function numbered(text: string, code: string, separator: string, particulars: EntryText['particulars']): EntryText {
  const fields = new Map<string, string>();
  let last = '';
  for (const part of text.split(separator).slice(1)) {
    const [, number, value] = /^(\d\d)(.*)$/s.exec(part) ?? [];
    // The separator may be a character of a text too.
    const added = value ?? `${separator}${part}`;
    last = number ?? last;
    fields.set(last, `${fields.get(last) ?? ''}${added}`);
  }
  const all = (pattern: RegExp) => [...fields].filter(([number]) => pattern.test(number)).map(([, value]) => value);
  const pieces = all(/^(?:2\d|6[0-3])$/);
  const sepa = tagged(pieces.join(''), /(EREF|KREF|MREF|CRED|DEBT|SVWZ|ABWA|ABWE|IBAN|BIC)[+:]/g);
  const remittance = sepa.get('SVWZ') ?? (sepa.size === 0 ? joined(pieces.map((each) => each.trim())) : '');
  const returned = fields.get('34');
  return {
    text: [remittance, sepa.get('ABWA'), fields.get('00')].filter((each) => meaningful(each) !== undefined).join(' '),
    references: [
      ['EndToEndId', sepa.get('EREF')],
      ['text', remittance],
      ['text', sepa.size === 0 && pieces.length > 1 ? pieces.join('') : undefined],
      ['InstrId', sepa.get('KREF')],
      ['MndtId', sepa.get('MREF')],
    ],
    particulars,
    name: meaningful(all(/^3[23]$/).join('')),
    behind: [meaningful(sepa.get('ABWA'))].flatMap((each) => each ?? []),
    account: meaningful(compact(fields.get('31') ?? sepa.get('IBAN') ?? '')),
    code,
    isReturn: RETURNS.has(code),
    returnCode: RETURNS.has(code) ? meaningful(returned) : undefined,
  };
}

const SLASHED =
  /(?:^|\/)(TRTP|IBAN|BIC|NAME|REMI|EREF|CSID|MARF|CNTP|ORDP|BENM|PREF|TRCD|RTRN|ULTD|ULTC|ULTB|PURP|ISDT|SVCL|ADDR|OCMT|EXCH|CHGS|NRTX|ID)\//;
const SLASHED_TAGS = new RegExp(SLASHED.source, 'g');

/** `/TRTP/SEPA/IBAN/…/NAME/…/REMI/…` and `/CNTP/account/bank/name/city/`. */
function slashed(text: string, particulars: EntryText['particulars']): EntryText {
  const tags = tagged(text, SLASHED_TAGS);
  const value = (tag: string) =>
    tags
      .get(tag)
      ?.replace(/^\/+|\/+$/g, '')
      .trim();
  const [account, , name] = (tags.get('CNTP') ?? '').replace(/^\//, '').split('/');
  const remittance = (value('REMI') ?? '').replace(/^(?:USTD|STRD)\/+(?:CUR\/)?/, '');
  const returned = value('RTRN')?.split('/')[0];
  const behind = meaningful(value('ULTD'));
  const transaction = value('TRTP') ?? value('TRCD') ?? '';
  return {
    text: joined([remittance, behind, transaction]),
    references: [
      ['EndToEndId', value('EREF')],
      ['text', remittance],
      ['PmtInfId', value('PREF')],
      ['MndtId', value('MARF')],
    ],
    particulars,
    name: meaningful(value('NAME') ?? name),
    behind: behind === undefined ? [] : [behind],
    account: meaningful(compact(value('IBAN') ?? account ?? '')),
    code: value('TRCD') ?? '',
    isReturn: returned !== undefined,
    returnCode: meaningful(returned),
  };
}

/** The text after each tag. The text of a tag that occurs twice is joined. */
function tagged(text: string, tag: RegExp) {
  const found = new Map<string, string>();
  const places = [...text.matchAll(tag)];
  for (const [index, place] of places.entries()) {
    const value = text.slice(place.index + place[0].length, places[index + 1]?.index).trim();
    found.set(place[1] as string, `${found.get(place[1] as string) ?? ''}${value}`);
  }
  return found;
}
