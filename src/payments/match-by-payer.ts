/**
 * Matches a payment that names no document for certain, by its payer and its amount. The payer must be certain: its
 * account is known, or its whole name is written, and no other partner has that name. Pure.
 */
import { Info } from 'luxon';
import { balanceOf, FoundNumbers } from './contradictions.ts';
import {
  Application,
  accountOf,
  CONFIDENCE,
  Evidence,
  Match,
  NamedDocument,
  Payable,
  Payer,
  Receipt,
} from './evidence.ts';
import { OpenItems } from './open-items.ts';
import { ShortReference } from './reference.ts';

/**
 * Returns the certain payer of a receipt. A name speaks for a partner only where the bank writes the payer; if the bank
 * gives no payer, the text may name it.
 */
function certainPayer(receipt: Receipt, items: OpenItems): Payer | undefined {
  const { payer_name } = receipt;
  const known = items.knownPayer(receipt);
  if (known !== undefined) return { partner_id: known, by: 'account', found: accountOf(receipt) };
  const all = items.namesIn(receipt);
  const [written, ...others] = payer_name === undefined ? all : items.namesIn({ payer_name, text: '' });
  const [partner_id, another] = written?.ids ?? [];
  if (
    written?.fit !== 'whole' ||
    !written.complete ||
    partner_id === undefined ||
    another !== undefined ||
    others.length > 0
  )
    return undefined;
  const isRelated = ({ ids }: { ids: ReadonlySet<string> }) => [...ids].some((id) => items.areRelated(partner_id, id));
  return all.every(isRelated) ? { partner_id, by: 'name', found: written.found } : undefined;
}

export function matchByPayer(receipt: Receipt, found: FoundNumbers, items: OpenItems): Match | undefined {
  const payer = certainPayer(receipt, items);
  if (payer === undefined) return undefined;
  const open = items.openPaidBy(payer.partner_id, receipt.amount.currency);
  const isWithoutNumber = found.certain.length === 0 && found.unknown.length === 0;
  return (
    (isWithoutNumber
      ? (byPartOfNumber(receipt, found, payer, open) ?? byShort(receipt, found, payer, items))
      : undefined) ?? byAmount(receipt, found, payer, { open, payerName: items.nameOf(payer.partner_id) })
  );
}

type Matched = Readonly<{
  confidence: string;
  evidence: Omit<Evidence, 'payer'>;
}>;

const matched = (
  payer: Payer,
  documents: readonly Payable[],
  why: string,
  of: (document: Payable) => Matched,
): Match => ({
  partner_id: payer.partner_id,
  applied: documents.map((document): Application => {
    const { confidence, evidence } = of(document);
    return {
      document,
      amount: document.balance,
      small_difference: undefined,
      confidence,
      evidence: { ...evidence, payer },
    };
  }),
  suggested: [],
  why,
});

/** The payer's only open document of exactly the amount whose number begins with the number that a field cuts off. */
function byPartOfNumber(
  { amount }: Receipt,
  { partial, short }: FoundNumbers,
  payer: Payer,
  open: readonly Payable[],
): Match | undefined {
  // What is cut off may be a whole sequence of another document.
  if (short.some(({ sequence }) => open.some(({ number }) => number.endsWith(`-${sequence}`)))) return undefined;
  const [only, ...others] = open.flatMap((document) => {
    const part = partial.find(({ beginning }) => document.number.replaceAll('-', '').startsWith(beginning));
    return part !== undefined && document.balance.equals(amount) ? [{ document, part }] : [];
  });
  if (only === undefined || others.length > 0) return undefined;
  const { document, part } = only;
  return matched(
    payer,
    [document],
    `pays ${document.number}: its exact amount, and the beginning of its number`,
    () => ({
      confidence: CONFIDENCE.partial_number_and_payer,
      evidence: {
        rule: 'reference_and_payer',
        reference: { number: document.number, field: part.field, found: part.found, guess: 'the number is cut off' },
        amount: 'exact',
        why: `${part.found} at the end of ${part.field} begins its number, the payer is known by its ${payer.by}, and the amount is exact`,
      },
    }),
  );
}

/** The payer's open documents that the text names by sequences alone, if they add up to exactly the amount. */
function byShort({ amount }: Receipt, { short }: FoundNumbers, payer: Payer, items: OpenItems): Match | undefined {
  const named = shortNamed(short, [], payer, amount.currency, items) ?? [];
  const documents = named.map(({ document }) => document);
  if (named.length === 0 || !balanceOf(documents, amount.currency).equals(amount)) return undefined;
  const numbers = documents.map(({ number }) => number).join(', ');
  return matched(payer, documents, `pays ${numbers}: their exact amount, and their sequences`, (document) => {
    const { reference } = named[documents.indexOf(document)] as (typeof named)[number];
    return {
      confidence: CONFIDENCE.partial_number_and_payer,
      evidence: {
        rule: 'reference_and_payer',
        reference,
        amount: documents.length === 1 ? 'exact' : 'one of several',
        why: `${reference.found} is in ${reference.field}, the payer is known by its ${payer.by}, and the amount is exact`,
      },
    };
  });
}

/**
 * Returns the documents that sequences alone name, beside the certain ones. Undefined if there are none, or if one of
 * the sequences names not exactly one open document of the payer.
 */
export function shortNamed(
  short: readonly ShortReference[],
  certain: readonly NamedDocument[],
  { partner_id }: Payer,
  currency: string,
  items: OpenItems,
) {
  const others = short.filter(
    ({ sequence }) => !certain.some(({ document }) => document.number.endsWith(`-${sequence}`)),
  );
  const named = items.namedBySequence(others, currency, (each) => items.paysFor(partner_id, each.partner_id));
  return named.length === 0 || named.length < others.length ? undefined : named;
}

/**
 * The payer's only open document of exactly the amount, or all that it owes. If several documents have the amount, the
 * text must name the month of one of them. The text must name no other number.
 */
function byAmount(
  { amount, text, payer_name }: Receipt,
  { named, partial, short, unknown }: FoundNumbers,
  payer: Payer,
  { open, payerName }: Readonly<{ open: readonly Payable[]; payerName: string }>,
): Match | undefined {
  const byAccount = payer.by === 'account';
  const isNumbered = named.length + partial.length + short.length > 0;
  if (unknown.length > 0 || (!byAccount && (isNumbered || payer_name === undefined))) return undefined;
  const equal = open.filter(({ balance }) => balance.equals(amount));
  const months = equal.length > 1 ? monthsIn(text, payerName) : undefined;
  const isNamed = ({ month }: Payable) => month !== null && [month, month.slice(5)].some((each) => months?.has(each));
  const [document, ...others] = months === undefined ? equal : equal.filter(isNamed);
  const confidence = byAccount ? CONFIDENCE.amount_and_account : CONFIDENCE.amount_and_name;
  const rule = byAccount ? 'amount_and_account' : 'amount_and_name';
  const known = byAccount
    ? `the account has paid for ${payer.partner_id} before`
    : `the payer's name is that of ${payer.partner_id} alone`;
  if (document !== undefined) {
    const isAnother = ({ number }: Payable) => number !== document.number;
    const contradicted =
      others.length > 0 ||
      named.some((each) => isAnother(each.document)) ||
      partial.length > 0 ||
      short.some(({ sequence }) => !document.number.endsWith(`-${sequence}`));
    if (contradicted) return undefined;
    const month = months === undefined ? '' : ` whose month, ${document.month}, is named`;
    const from = byAccount ? 'from a known account' : 'under its name';
    return matched(payer, [document], `pays ${document.number}: its exact amount${month}, ${from}`, () => ({
      confidence,
      evidence: {
        rule,
        amount: 'exact',
        why: `${document.number} is the only open document${month} that ${payer.partner_id} pays over ${amount.forPeople()}, and ${known}`,
      },
    }));
  }
  if (equal.length > 0 || isNumbered) return undefined;
  const own = open.filter((each) => each.partner_id === payer.partner_id);
  const all = [open, own].find((each) => each.length > 1 && balanceOf(each, amount.currency).equals(amount));
  if (all === undefined) return undefined;
  const numbers = all.map(({ number }) => number).join(', ');
  return matched(payer, all, `pays all that is open: ${numbers}`, () => ({
    confidence,
    evidence: {
      rule,
      amount: 'one of several',
      why: `${all.length} documents are all that ${payer.partner_id} has to pay, they add up to ${amount.forPeople()}, and ${known}`,
    },
  }));
}

/** Words for months in the languages of the documents, without accents. */
const MONTHS: ReadonlyMap<string, string> = new Map(
  ['en', 'de', 'fr', 'es', 'it', 'nl', 'pt'].flatMap((locale) =>
    Info.months('long', { locale }).map((name, index) => [plain(name), String(index + 1).padStart(2, '0')] as const),
  ),
);

function plain(text: string) {
  return text.normalize('NFKD').replace(/\p{M}/gu, '').toUpperCase();
}

const DAY_BEFORE = /(?<!\d)\d{1,2}(?:\.|ST|ND|RD|TH)?[\s-]*(?:OF|DE)?\s*$/;

/**
 * The months that a text names as periods, as `08` or with their year as `2026-08`. A month beside a day is a date, and
 * a month in the payer's name is none.
 */
function monthsIn(text: string, payerName: string): ReadonlySet<string> {
  const written = plain(text);
  const ofName = new Set(plain(payerName).match(/\p{L}+/gu));
  const words = [...written.matchAll(/\p{L}+/gu)].flatMap(({ 0: word, index }) => {
    const month = MONTHS.get(word);
    const [, after = ''] = /^[\s.,'-]*(?:DE\s+)?(\d+)/.exec(written.slice(index + word.length)) ?? [];
    const isDate = DAY_BEFORE.test(written.slice(0, index)) || (after !== '' && !/^20\d\d$/.test(after));
    return month === undefined || isDate || ofName.has(word) ? [] : [after === '' ? month : `${after}-${month}`];
  });
  const signs = [...written.matchAll(/(\d{1,2})月(?!\s*\d+\s*日)/g)].map(([, month = '']) => month.padStart(2, '0'));
  return new Set([...words, ...signs, ...(written.match(/\b20\d\d-\d\d\b(?!-)/g) ?? [])]);
}
