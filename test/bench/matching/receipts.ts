/**
 * The receipts of the benchmark, with the truth about each: who paid, which invoices, and how much of each. They are
 * made from the table of shares, and know nothing of how the program matches.
 */
import { type Bank, bankOf, currencyOf, inCapitals, type Line } from './banks.ts';
import type { Draw } from './draw.ts';
import {
  type Document,
  decimal,
  type Ledger,
  MONTH_INDEXES,
  type MonthIndex,
  type Partner,
  type Role,
  STYLES,
  type Style,
} from './ledger.ts';
import { CATEGORIES, type Category, CURRENCIES, type Currency, SHARES, sharedTo } from './shares.ts';

export interface Receipt {
  readonly category: Category;
  /** The month whose invoices were the latest when the money came. */
  readonly month: MonthIndex;
  readonly line: Line;
  /** Null for a stranger. */
  readonly payer: string | null;
  /** What the money pays, in minor units. */
  readonly allocation: readonly { readonly number: string; readonly amount: number }[];
  /** Invoices that owe nothing afterwards. */
  readonly closes: readonly string[];
  /** The bank's reference of the receipt that a return takes back. */
  readonly takesBack: string | null;
}

/** The months in which the bank's lines are booked: each follows a month that was closed. */
export const CALENDAR = ['2026-08', '2026-09', '2026-10'] as const;

/** Settings of the benchmark: a difference counts as small up to these amounts, and up to 1 % of the amount owed. */
export const SMALL_DIFFERENCE = { USD: '25.00', EUR: '15.00', GBP: '15.00', JPY: '4000', percent: '1' } as const;

/** ISO 11649: RF, two check digits, and the number without its dashes. */
export function creditorReference(number: string): string {
  const reference = number.replaceAll('-', '');
  const numeric = `${reference}RF00`.replace(/[A-Z]/g, (letter) => String(letter.charCodeAt(0) - 55));
  return `RF${String(98n - (BigInt(numeric) % 97n)).padStart(2, '0')}${reference}`;
}
/** With references, every third receipt that could carry one does. */
const WITH_REFERENCE = 3;

const NAMED_MONTHS = ['JULY', 'AUGUST', 'SEPTEMBER'] as const;
const seqOf = (document: Document): number => Number(document.number.slice(-6));
const sixOf = (document: Document): string => document.number.slice(-6);

const SPELLINGS: readonly ((six: string) => string)[] = [
  (six) => `INV2026${six}`,
  (six) => `INV 2026 ${six}`,
  (six) => `INV 2026-${six}`,
  (six) => `INV/2026/${six}`,
  (six) => `INV.2026.${six}`,
  (six) => `INV_2026_${six}`,
  (six) => `INV- 2026- ${six}`,
  (six) => `INVOICE NO INV2026-${six}`,
  (six) => `RE:INV-2026-${six}/TICKETS`,
  (six) => `INV#2026-${six}`,
  (six) => `inv-2026-${six}`,
  (six) => `Inv. 2026/${six}`,
];

const CUT_WIDTH = 35;
/** In front of a number that a field of 35 characters cuts: one to five digits of it remain. */
const BEFORE_CUT = [
  'TICKET PROTECTION AUG',
  'PAYMENT FOR SEPTEMBER',
  'EVENT PROTECTION SALES',
  'PARTNER SETTLEMENT 08',
  'MONTHLY BILLING TICKETS',
];

const PROVIDERS = [
  { name: 'Wise Payments Ltd', iban: 'GB29EXMP60161331926819' },
  { name: 'Ebury Partners UK Ltd', iban: 'GB94EXMP10201530093459' },
];

const STRANGERS: Readonly<Record<Currency, readonly (readonly [name: string, text: string])[]>> = {
  USD: [
    ['CITY OF SPRINGFIELD', 'PERMIT REFUND 5581'],
    ['STATE OF ILLINOIS TREASURY', 'TAX REFUND 2025'],
    ['NORTHERN MUTUAL INSURANCE', 'CLAIM 77120431'],
  ],
  EUR: [
    ['Finanzamt Musterstadt', 'ERSTATTUNG UST 2025 STNR 27/815/08150'],
    ['Stadtwerke Musterhausen', 'GUTHABEN KD 4711882'],
  ],
  GBP: [['HMRC VAT', 'REPAYMENT 882 7714']],
  JPY: [],
};

const MISSPELLED: readonly ((name: string) => string)[] = [
  // A letter is missing.
  (name) => `${name.slice(0, 3)}${name.slice(4)}`,
  // Words are joined.
  (name) => name.replace(' ', ''),
  // The trade comes first.
  (name) => name.replace(/^(\S+) (\S+)/, '$2 $1'),
  // Vowels after the first word are left out.
  (name) => name.replace(/ .*$/, (rest) => rest.replace(/[AEIOU]/g, '')),
  // The first word is shortened, and another form of company follows.
  (name) => name.replace(/^(\S{3})\S*/, '$1').replace(/ \S+$/, ' HOLDINGS'),
];

interface Payment {
  readonly category: Category;
  readonly payer: Partner | null;
  readonly month: MonthIndex;
  readonly documents: readonly Document[];
  /** What of each document is paid; without it, all. */
  readonly amounts?: readonly number[];
  /** The money, if it is not the sum of the amounts. */
  readonly amount?: number;
  readonly text: string;
  /** What stays in the text when a reference stands for the numbers. */
  readonly besides?: string;
  /** Whether the documents are paid in full, as by an amount that differs a little. */
  readonly closes?: boolean;
  readonly bank?: Bank;
  readonly name?: string;
  readonly account?: string;
  readonly ultimateDebtor?: string;
  readonly documentNumber?: string;
  readonly kind?: Line['kind'];
  readonly day?: number;
  readonly takesBack?: string;
}

const ORDINARY: readonly Role[] = ['ordinary', 'special-name'];
const WITHOUT_TRAPS: readonly Role[] = [
  ...ORDINARY,
  'parent',
  'child',
  'named-credit',
  'unnamed-credit',
  'other-credit',
];

export function makeReceipts(draw: Draw, ledger: Ledger, withReferences: boolean): Receipt[] {
  const receipts: Receipt[] = [];
  const counted = new Map<string, number>();
  const spent = new Set<Document>();
  const amounts = new Set(ledger.documents.map(({ currency, amount }) => `${currency} ${amount}`));
  let references = 0;

  // --- What is left to pay --------------------------------------------------------------------------------------------

  const isFree = (document: Document) => document.amount > 0 && !spent.has(document);
  const documentsOf = (partner: Partner, months: readonly MonthIndex[]) =>
    months.map((month) => ledger.document(partner, month));
  const spend = (documents: readonly Document[]): readonly Document[] => {
    for (const document of documents) spent.add(document);
    return documents;
  };
  /** The documents of these months of a partner that has not paid any of them. */
  const find = (
    currency: Currency,
    months: readonly MonthIndex[],
    where: (partner: Partner, documents: readonly Document[]) => boolean = () => true,
    roles = ORDINARY,
  ): readonly Document[] | null => {
    const partners = draw.shuffled(ledger.partners.filter((each) => each.currency === currency));
    for (const partner of partners) {
      const documents = documentsOf(partner, months);
      if (roles.includes(partner.role) && documents.every(isFree) && where(partner, documents)) return documents;
    }
    return null;
  };
  const take = (...asked: Parameters<typeof find>): readonly Document[] => {
    const found = find(...asked);
    if (found === null) throw new Error(`no partner of ${asked[0]} is left with months ${asked[1].join(', ')}`);
    return spend(found);
  };
  /** One document, of the first of these months in which there is a free one. */
  const takeOne = (
    currency: Currency,
    months: readonly MonthIndex[] = draw.shuffled(MONTH_INDEXES),
    where?: (partner: Partner, documents: readonly Document[]) => boolean,
    roles?: readonly Role[],
  ): Document => {
    for (const month of months) {
      const found = find(currency, [month], where, roles);
      if (found !== null) return spend(found)[0] as Document;
    }
    throw new Error(`no document of ${currency} is left`);
  };
  const partnersOf = (role: Role, currency: Currency, group?: number): Partner[] =>
    ledger.partners.filter(
      (each) => each.role === role && each.currency === currency && (group === undefined || each.group === group),
    );
  const each = (category: Category, currency: Currency, make: (at: number) => void) => {
    for (let at = counted.get(`${category} ${currency}`) ?? 0; at < sharedTo(category, currency); at += 1) make(at);
  };

  // --- What a payer sends ---------------------------------------------------------------------------------------------

  const dayOf = (month: MonthIndex, wanted?: number): string => {
    const days = Array.from({ length: 26 }, (_, at) => `${CALENDAR[month]}-${String(at + 3).padStart(2, '0')}`);
    const working = days.filter((day) => ![0, 6].includes(new Date(`${day}T00:00:00Z`).getUTCDay()));
    return working[wanted ?? draw.whole(1, working.length - 1)] as string;
  };
  const nameOf = (partner: Partner, bank: Bank): string => {
    // Kana names are a category of their own.
    if (bank === 'JPY') return inCapitals(partner.name);
    if (partner.bankName !== null) return partner.bankName;
    const isOurStyle = currencyOf(bank) === 'USD';
    return isOurStyle ? inCapitals(partner.name) : draw.one([partner.name, partner.name, inCapitals(partner.name)]);
  };

  const add = (payment: Payment): Receipt => {
    const { category, payer, month, documents } = payment;
    const bank = payment.bank ?? bankOf((payer as Partner).currency, (payer as Partner).style);
    const currency = currencyOf(bank);
    const paid = payment.amounts ?? documents.map(({ amount }) => amount);
    const count = counted.get(`${category} ${currency}`) ?? 0;
    counted.set(`${category} ${currency}`, count + 1);
    const ofCategory = CURRENCIES.reduce((sum, of) => sum + (counted.get(`${category} ${of}`) ?? 0), 0);
    references += 1;
    const name = payment.name ?? nameOf(payer as Partner, bank);
    const account = payment.account ?? payer?.account ?? '';
    const bookedOn = dayOf(month, payment.day);
    const hasReference = withReferences && SHARES[category].reference && ofCategory % WITH_REFERENCE === 1;
    const numbers = documents.map(({ number }) => creditorReference(number));
    const text = hasReference ? [...numbers, payment.besides ?? ''].join(' ').trim() : payment.text;
    const isStructured = hasReference && numbers.length === 1 && payment.besides === undefined;
    const receipt: Receipt = {
      category,
      month,
      payer: payer?.id ?? null,
      allocation: documents.map(({ number }, at) => ({ number, amount: paid[at] as number })),
      closes: payment.closes === true ? documents.map(({ number }) => number) : [],
      takesBack: payment.takesBack ?? null,
      line: {
        bank,
        reference: `BK${String(40_210_000 + references * 37)}`,
        bookedOn,
        direction: payment.kind === 'return' ? 'debit' : 'credit',
        amount: payment.amount ?? paid.reduce((sum, amount) => sum + amount, 0),
        payer: name,
        account: bank === 'JPY' ? '' : account,
        text: currency === 'USD' ? text.toUpperCase() : text,
        kind: payment.kind ?? 'payment',
        ...(payment.ultimateDebtor === undefined ? {} : { ultimateDebtor: payment.ultimateDebtor }),
        ...(isStructured ? { creditorReference: numbers[0] as string } : {}),
        ...(payment.documentNumber === undefined || hasReference ? {} : { documentNumber: payment.documentNumber }),
      },
    };
    receipts.push(receipt);
    return receipt;
  };

  const wordsWith = (document: Document): string => {
    const { number, month, currency, amount } = document;
    const words = [
      number,
      number,
      `PAYMENT ${number}`,
      `INVOICE ${number} ${NAMED_MONTHS[month]} 2026`,
      `${number} TICKET PROTECTION ${NAMED_MONTHS[month]}`,
      `OUR REF ${draw.digits(5)} YOUR INVOICE ${number}`,
    ];
    const isAch = currency === 'USD' && ['orig-co-name', 'des-co-id'].includes(document.partner.style);
    return draw.one(isAch ? [...words, `RMR*IV*${number}**${decimal(amount, currency)}\\`] : words);
  };
  const addClean = (document: Document, month: MonthIndex = document.month, day?: number): Receipt => {
    const isCamt = document.currency === 'EUR' || document.currency === 'GBP';
    const structured = isCamt && draw.whole(1, 4) === 1 ? { documentNumber: document.number } : {};
    const documents = spend([document]);
    const given = day === undefined ? {} : { day };
    const common = { category: 'clean', payer: document.partner, month, documents, ...given, ...structured } as const;
    return add({ ...common, text: wordsWith(document) });
  };
  /** A payment of the partner's first month, which teaches its account. */
  const teach = (partner: Partner) => addClean(ledger.document(partner, 0));
  const withoutNumber = (month: MonthIndex) =>
    draw.one([
      `TICKET PROTECTION ${NAMED_MONTHS[month]}`,
      `PAYMENT FOR ${NAMED_MONTHS[month]}`,
      'VENDOR PAYMENT',
      `SETTLEMENT ${NAMED_MONTHS[month]} 2026`,
    ]);
  const latest = (documents: readonly Document[]): MonthIndex =>
    documents.reduce<MonthIndex>((last, { month }) => (month > last ? month : last), 0);
  const partnerOf = (documents: readonly Document[]): Partner => (documents[0] as Document).partner;
  const twoMonths = () =>
    draw.one<readonly MonthIndex[]>([
      [0, 1],
      [1, 2],
    ]);

  // --- Fixed places: families, twins, credit notes, providers ---------------------------------------------------------

  for (const currency of CURRENCIES) {
    each('family', currency, (group) => {
      const [parent] = partnersOf('parent', currency, group) as [Partner];
      const documents = spend(partnersOf('child', currency, group).map((child) => ledger.document(child, 0)));
      const text = documents.map(({ number }) => number).join(', ');
      add({ category: 'family', payer: parent, month: 0, documents, text });
    });
    each('familySum', currency, (group) => {
      const [parent] = partnersOf('parent', currency, group) as [Partner];
      const family = [parent, ...partnersOf('child', currency, group)];
      const documents = spend(family.map((member) => ledger.document(member, 2)));
      add({ category: 'familySum', payer: parent, month: 2, documents, text: withoutNumber(2) });
    });
    each('namedCredit', currency, (at) => {
      const partner = partnersOf('named-credit', currency)[at] as Partner;
      const [credit, document] = documentsOf(partner, [1, 2]) as [Document, Document];
      const besides = draw.one([`LESS ${credit.number}`, `MINUS CREDIT NOTE ${credit.number}`, `/ ${credit.number}`]);
      const common = { category: 'namedCredit', payer: partner, month: 2, documents: spend([document]) } as const;
      const text = `${document.number} ${besides}`;
      add({ ...common, amounts: [document.amount + credit.amount], text, besides, closes: true });
    });
    each('unnamedCredit', currency, (at) => {
      const partner = partnersOf('unnamed-credit', currency)[at] as Partner;
      const [credit, document] = documentsOf(partner, [1, 2]) as [Document, Document];
      const common = { category: 'unnamedCredit', payer: partner, month: 2, documents: spend([document]) } as const;
      add({ ...common, amounts: [document.amount + credit.amount], text: wordsWith(document), closes: true });
    });
    each('equalFees', currency, (at) => {
      const partner = partnersOf('flat', currency)[at] as Partner;
      teach(partner);
      // The first of them pays at once, the others a month late, when two equal invoices are open.
      const month: MonthIndex = at === 0 && currency === 'USD' ? 1 : 2;
      const documents = spend([ledger.document(partner, 1)]);
      spend([ledger.document(partner, 2)]);
      add({ category: 'equalFees', payer: partner, month, documents, text: 'MONTHLY FEE AUGUST' });
    });
    each('specialName', currency, (at) => {
      const partner = partnersOf('special-name', currency)[at] as Partner;
      const documents = spend([ledger.document(partner, 0)]);
      add({ category: 'specialName', payer: partner, month: 0, documents, text: wordsWith(documents[0] as Document) });
    });
  }
  for (const east of partnersOf('twin-east', 'USD')) {
    const documents = spend([ledger.document(east, 0)]);
    add({ category: 'teaching', payer: east, month: 0, documents, text: wordsWith(documents[0] as Document) });
  }
  const [first, second] = [...partnersOf('provider-first', 'USD'), ...partnersOf('provider-second', 'USD')] as [
    Partner,
    Partner,
  ];
  const billing = { name: 'BILL.COM INC', account: '9876543210' };
  const taught = spend([ledger.document(first, 0)]);
  const firstText = `${inCapitals(first.name)} ${(taught[0] as Document).number}`;
  add({ category: 'teaching', payer: first, month: 0, documents: taught, text: firstText, ...billing });
  teach(second);
  const collective = spend([ledger.document(second, 1)]);
  const secondText = `${inCapitals(second.name)} PAYMENT`;
  add({ category: 'collective', payer: second, month: 1, documents: collective, text: secondText, ...billing });
  each('teaching', 'EUR', () => {
    const document = takeOne('EUR', [0]);
    add({ category: 'teaching', payer: document.partner, month: 0, documents: [document], text: wordsWith(document) });
  });
  each('nearTwin', 'USD', (group) => {
    const [east] = partnersOf('twin-east', 'USD', group) as [Partner];
    const [west] = partnersOf('twin-west', 'USD', group) as [Partner];
    const [named, documents] = [ledger.document(east, 1), spend([ledger.document(west, 1)])];
    add({ category: 'nearTwin', payer: west, month: 1, documents, text: named.number });
  });

  // --- Several months of a partner ------------------------------------------------------------------------------------

  for (const currency of CURRENCIES) {
    each('knownAccount', currency, (at) => {
      // Seven wires in dollars carry no account that a reader could know.
      const styles: readonly Style[] = at < 3 ? ['orig-co-name', 'des-co-id'] : ['org-srf'];
      const hasStyle = (partner: Partner) => partner.account !== '' && styles.includes(partner.style);
      const [before, document] = take(currency, [0, 1], currency === 'USD' ? hasStyle : undefined) as [
        Document,
        Document,
      ];
      addClean(before);
      const common = { category: 'knownAccount', payer: document.partner, month: 1, documents: [document] } as const;
      add({ ...common, text: withoutNumber(1) });
    });
    each('statement', currency, () => {
      const documents = take(currency, [0, 1, 2]);
      const text = draw.one(['STATEMENT SEPTEMBER 2026', 'ACCOUNT STATEMENT', 'ALL OPEN ITEMS', 'Q3 2026']);
      add({ category: 'statement', payer: partnerOf(documents), month: 2, documents, text });
    });
    each('several', currency, (at) => {
      const documents = take(currency, at % 3 === 2 ? [0, 1, 2] : twoMonths());
      const text = documents.map(({ number }) => number).join(draw.one([' ', ', ', ' + ', ' AND ']));
      add({ category: 'several', payer: partnerOf(documents), month: latest(documents), documents, text });
    });
    each('short', currency, () => {
      const documents = take(currency, twoMonths());
      const [one, other] = documents as [Document, Document];
      const text = draw.one([
        `${one.number}, ${sixOf(other)}`,
        `${one.number} AND ${seqOf(other)}`,
        `${one.number} / ${sixOf(other)}`,
        `${one.number} + ${seqOf(other)}`,
      ]);
      add({ category: 'short', payer: one.partner, month: latest(documents), documents, text });
    });
    each('ownOther', currency, (at) => {
      const documents = take(currency, twoMonths());
      // Five of eight name the larger invoice, the others the smaller one.
      const ordered = documents.toSorted((one, other) => one.amount - other.amount) as [Document, Document];
      const [paid, named] = at % 3 === 2 ? ordered.toReversed() : ordered;
      const common = { category: 'ownOther', payer: partnerOf(documents), month: latest(documents) } as const;
      add({ ...common, documents: [paid as Document], text: wordsWith(named as Document) });
    });
    each('twice', currency, () => {
      const document = takeOne(currency, [0, 1]);
      const { line } = addClean(document);
      const again = { category: 'twice', payer: document.partner, month: (document.month + 1) as MonthIndex } as const;
      add({ ...again, documents: [], amount: document.amount, text: line.text, name: line.payer });
    });
  }
  each('returned', 'USD', () => {
    const hasId = (partner: Partner) => partner.account !== '' && ['orig-co-name', 'des-co-id'].includes(partner.style);
    const document = takeOne('USD', [0, 1], hasId);
    const { line } = addClean(document, document.month, 19);
    const common = {
      category: 'returned',
      payer: document.partner,
      month: (document.month + 1) as MonthIndex,
    } as const;
    const back = { kind: 'return', takesBack: line.reference, day: 0 } as const;
    add({ ...common, ...back, documents: [], amount: document.amount, text: document.number, name: line.payer });
  });

  // --- Wrong numbers, and money that is nobody's ----------------------------------------------------------------------

  const invoices = new Map(ledger.documents.filter(({ amount }) => amount > 0).map((each) => [each.number, each]));
  /** The number with one digit wrong that no invoice has. */
  const nobodysNumber = ({ number }: Document): string => {
    const wrong = [`INV-2025-${number.slice(-6)}`, `INV-2026-00${draw.whole(1, 9)}${number.slice(-3)}`];
    const hundreds = [7, 8, 9].map((digit) => `INV-2026-000${digit}${number.slice(-2)}`);
    return draw.one([...wrong, ...hundreds].filter((each) => !invoices.has(each)));
  };
  /** An open invoice of another partner whose number differs in one digit. */
  const neighborOf = (document: Document): Document | undefined => {
    const digits = sixOf(document);
    const changed = [3, 4, 5].flatMap((at) =>
      Array.from({ length: 10 }, (_, digit) => `INV-2026-${digits.slice(0, at)}${digit}${digits.slice(at + 1)}`),
    );
    return draw
      .shuffled(changed.flatMap((number) => invoices.get(number) ?? []))
      .find(
        (other) =>
          isFree(other) &&
          other.partner !== document.partner &&
          other.currency === document.currency &&
          other.month <= document.month &&
          ORDINARY.includes(other.partner.role),
      );
  };
  // Of fourteen, four name another partner's open invoice, and three come from an account that is known. The others have
  // not paid before.
  const foreign: Readonly<Record<Currency, number>> = { USD: 2, EUR: 1, GBP: 1, JPY: 0 };
  const known: Readonly<Record<Currency, number>> = { USD: 1, EUR: 2, GBP: 0, JPY: 0 };
  for (const currency of CURRENCIES) {
    each('wrongDigit', currency, (at) => {
      const isForeign = at < foreign[currency];
      const isKnown = !isForeign && at < foreign[currency] + known[currency];
      const hasAccount = (partner: Partner) => partner.account !== '' && partner.style !== 'org-srf';
      const documents = isKnown
        ? take(currency, [0, 1], hasAccount)
        : take(currency, [0, 1], (_, both) => !isForeign || neighborOf(both[1] as Document) !== undefined);
      if (isKnown) addClean(documents[0] as Document);
      const document = documents.at(-1) as Document;
      const neighbor = isForeign ? (neighborOf(document) as Document) : null;
      if (neighbor !== null) spend([neighbor]);
      const text = draw.one(['', 'PAYMENT ', 'INVOICE ']) + (neighbor?.number ?? nobodysNumber(document));
      const common = { category: 'wrongDigit', payer: document.partner, month: document.month } as const;
      add({ ...common, documents: [document], text });
    });
    each('stranger', currency, (at) => {
      const equal = takeOne(currency);
      const [name, text] = STRANGERS[currency][at] as readonly [string, string];
      // The first of them has an empty company id, as some of the payers have.
      const bank = bankOf(currency, STYLES[at % STYLES.length] as Style);
      const account = currency === 'USD' ? (at === 0 ? '' : `9${draw.digits(9)}`) : '';
      const common = { category: 'stranger', payer: null, month: equal.month, documents: [] } as const;
      add({ ...common, amount: equal.amount, text, name, account, bank });
    });
    each('onAccount', currency, () => {
      const partner = (find(currency, [2]) as readonly [Document])[0].partner;
      const rounds = [1000, 2500, 5000, 7500, 10_000].map((major) => major * 100);
      const amount = draw.one(rounds.filter((each) => !amounts.has(`${currency} ${each}`)));
      const text = draw.one(['ON ACCOUNT', 'PREPAYMENT Q4', 'DEPOSIT', 'ADVANCE PAYMENT']);
      add({ category: 'onAccount', payer: partner, month: draw.one(MONTH_INDEXES), documents: [], amount, text });
    });
    each('otherCurrency', currency, (at) => {
      const document = takeOne(currency === 'EUR' ? 'USD' : 'EUR');
      const bank = bankOf(currency, 'orig-id');
      const amount = at === 0 ? document.amount : Math.round(document.amount * 1.0931);
      const common = { category: 'otherCurrency', payer: document.partner, month: document.month, bank } as const;
      add({ ...common, documents: [], amount, text: document.number });
    });
  }

  // --- One document each ----------------------------------------------------------------------------------------------

  const least: Readonly<Record<Currency, number>> = { USD: 120_000, EUR: 120_000, GBP: 120_000, JPY: 80_000 };
  const isLarge = (_: Partner, [one]: readonly Document[]) =>
    (one as Document).amount >= least[(one as Document).currency];
  /** Fees of banks that are within both limits of a small difference. */
  const feesWithin = ({ currency, amount }: Document): number[] => {
    const most = Math.min(
      Math.round(Number(SMALL_DIFFERENCE[currency]) * (currency === 'JPY' ? 1 : 100)),
      amount / 100,
    );
    return (currency === 'JPY' ? [660, 770, 1500, 2500, 4000] : [1000, 1200, 1500, 2000, 2500]).filter(
      (fee) => fee <= most,
    );
  };
  for (const currency of CURRENCIES) {
    const single = (
      category: Category,
      of: (document: Document, at: number) => Partial<Payment> & { readonly text: string },
      options: { months?: readonly MonthIndex[]; where?: typeof isLarge; roles?: readonly Role[] } = {},
    ) =>
      each(category, currency, (at) => {
        const document = takeOne(currency, options.months, options.where, options.roles);
        const common = { category, payer: document.partner, month: document.month, documents: [document] };
        add({ ...common, ...of(document, at) });
      });
    const later = () => draw.shuffled<MonthIndex>([1, 2]);
    single(
      'fee',
      (document) => {
        const fee = draw.one(feesWithin(document));
        return { amounts: [document.amount - fee], text: wordsWith(document), closes: true };
      },
      { where: isLarge },
    );
    single(
      'cents',
      (document, at) => {
        const cents = currency === 'JPY' ? draw.whole(1, 9) : draw.whole(1, 95);
        // One in three is too much: the rest is the payer's.
        return at % 3 === 2
          ? { amounts: [document.amount], amount: document.amount + cents, text: wordsWith(document) }
          : { amounts: [document.amount - cents], text: wordsWith(document), closes: true };
      },
      { where: isLarge },
    );
    single('largeFee', (document) => ({ amounts: [document.amount - 4500], text: wordsWith(document) }), {
      where: isLarge,
    });
    single('part', (document) => {
      const amount = Math.round(document.amount * draw.one([0.4, 0.5, 0.6]));
      return { amounts: [amount], text: `PART 1 OF 2 ${document.number}`, besides: 'PART 1 OF 2' };
    });
    single(
      'exchange',
      (document) => {
        const amount = Math.round(document.amount * (0.968 + draw.unit() * 0.004));
        return { amounts: [amount], text: wordsWith(document) };
      },
      { where: isLarge },
    );
    single(
      'cut',
      (document) => {
        const text = `${draw.one(BEFORE_CUT)} ${document.number}`.slice(0, CUT_WIDTH);
        return { text };
      },
      { months: later() },
    );
    single(
      'lockbox',
      (document, at) => {
        const name = inCapitals(document.partner.name);
        return { kind: 'lockbox', text: `${at % 2 === 0 ? `${name} ` : ''}INV ${seqOf(document)}`, account: '' };
      },
      { months: later() },
    );
    single(
      'otherName',
      (document) => {
        const name = draw.one(MISSPELLED)(inCapitals(document.partner.name));
        // Paid from an account that has not paid before.
        const account = currency === 'USD' ? `1${draw.digits(9)}` : '';
        return { name, account, text: withoutNumber(document.month) };
      },
      { months: later() },
    );
    single('kana', ({ partner, month }) => {
      const kana = partner.kana ?? '';
      return { name: draw.one([`ｶ)${kana}`, `${kana}(ｶ`]), text: month === 2 ? '' : `${month + 7}月分` };
    });
    single('provider', (document, at) => {
      const provider = PROVIDERS[at === 2 ? 1 : 0] as (typeof PROVIDERS)[number];
      const common = { name: provider.name, account: provider.iban, text: wordsWith(document) };
      return { ...common, ultimateDebtor: document.partner.name };
    });
    single(
      'spelling',
      (document) => {
        const number = draw.one(SPELLINGS)(sixOf(document));
        return { text: draw.one([number, number, `PAYMENT ${number}`, `${number} ${NAMED_MONTHS[document.month]}`]) };
      },
      { roles: WITHOUT_TRAPS },
    );
    // What is left of the clean ones is mostly of the first month.
    each('clean', currency, () => {
      const months: readonly MonthIndex[] = draw.whole(1, 3) < 3 ? [0, 1, 2] : draw.shuffled(MONTH_INDEXES);
      addClean(takeOne(currency, months, undefined, WITHOUT_TRAPS));
    });
  }
  for (const category of CATEGORIES)
    for (const currency of CURRENCIES) {
      const made = counted.get(`${category} ${currency}`) ?? 0;
      if (made !== sharedTo(category, currency)) throw new Error(`${category} has ${made} receipts of ${currency}`);
    }
  return receipts;
}
