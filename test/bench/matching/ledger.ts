/**
 * The partners of the benchmark, their rows of three months, and the documents that the three closes issue. The numbers
 * are known beforehand, because a close numbers documents in the order of partners.
 */
import type { Draw } from './draw.ts';
import { CREDIT_NOTES, CURRENCIES, type Currency, PARTNERS } from './shares.ts';

export const MONTHS = ['2026-07', '2026-08', '2026-09'] as const;
/** A position in MONTHS. */
export type MonthIndex = 0 | 1 | 2;
export const MONTH_INDEXES: readonly MonthIndex[] = [0, 1, 2];

/** How a bank of the United States writes the text of a BAI2 line, called by the tags that it prints. */
export const STYLES = ['orig-co-name', 'orig-id', 'des-co-id', 'org-srf'] as const;
export type Style = (typeof STYLES)[number];

/** What a partner is in the benchmark, beside an ordinary payer. */
export type Role =
  | 'ordinary'
  | 'parent'
  | 'child'
  | 'twin-east'
  | 'twin-west'
  | 'provider-first'
  | 'provider-second'
  | 'flat'
  | 'named-credit'
  | 'unnamed-credit'
  | 'other-credit'
  | 'special-name';

export interface Partner {
  readonly id: string;
  readonly name: string;
  /** As the payer's bank writes it, if that is not what capital letters make of the name. */
  readonly bankName: string | null;
  readonly kana: string | null;
  readonly currency: Currency;
  readonly role: Role;
  /** Families and twins belong together by this number. */
  readonly group: number;
  readonly parent: string | null;
  readonly style: Style;
  /** The payer's account or company id; empty if its bank sends none. */
  readonly account: string;
}

export interface Document {
  readonly number: string;
  readonly partner: Partner;
  readonly month: MonthIndex;
  readonly currency: Currency;
  /** In minor units; below zero for a credit note. */
  readonly amount: number;
}

export interface Ledger {
  readonly partners: readonly Partner[];
  readonly documents: readonly Document[];
  readonly document: (partner: Partner, month: MonthIndex) => Document;
  /** CSV of a month's rows. */
  readonly rows: Readonly<Record<MonthIndex, string>>;
}

/** Minor units as a decimal. */
export function decimal(minor: number, currency: Currency): string {
  if (currency === 'JPY') return String(minor);
  const sign = minor < 0 ? '-' : '';
  const digits = String(Math.abs(minor)).padStart(3, '0');
  return `${sign}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

export const inMinor = (text: string, currency: Currency): number =>
  Math.round(Number(text) * (currency === 'JPY' ? 1 : 100));

const HEADS = (
  'Amber Anchor Aspen Aurora Avalon Banner Bayside Beacon Birch Bluebird Bramble Bridgeport Brook Cascade Cedar ' +
  'Chestnut Cinder Citadel Clover Cobalt Compass Copper Coral Cottonwood Crescent Crown Cypress Dahlia Delta Dover ' +
  'Drift Dune Eagle Echo Elm Ember Emerald Evergreen Fairway Fern Flint Forge Fox Garnet Gateway Glacier Granite ' +
  'Grove Gulf Hazel Heron Hickory Highland Hollow Horizon Indigo Iris Iron Ivory Jasper Juniper Keystone Kingfisher ' +
  'Lantern Larkspur Laurel Liberty Linden Lotus Magnolia Maple Marble Marina Meadow Meridian Midland Mistral Monarch ' +
  'Nova Oak Oasis Obsidian Olive Onyx Opal Osprey Otter Palm Pearl Pebble Pelican Pine Pioneer Plaza Poplar Prairie ' +
  'Quarry Quartz Quill Raven Redwood Ridge River Robin Rosewood Saffron Sage Sapphire Sequoia Shoreline Sierra Silver ' +
  'Slate Solstice Sparrow Spruce Sterling Stone Sunset Swift Sycamore Tamarack Thistle Timber Topaz Trellis Tulip ' +
  'Umber Valley Vantage Verdant Vista Walnut Waterfront Willow Windmill Wren Yarrow Zephyr'
).split(' ');
const TRADES = (
  'Tickets,Travel,Events,Tours,Lodging,Arena,Cruises,Charters,Box Office,Ticketing,Holidays,Concerts,Resorts,Rentals,' +
  'Theatre Group,Festivals,Outdoor Adventures,Sports Travel,Rail Journeys,Stadium Services'
).split(',');
const FORMS: Readonly<Record<Currency, readonly string[]>> = {
  USD: ['Inc', 'LLC', 'Corp', 'LLC', 'Co'],
  EUR: ['GmbH', 'B.V.', 'SAS', 'S.r.l.', 'AG', 'S.L.'],
  GBP: ['Ltd', 'Limited', 'PLC', 'Ltd'],
  JPY: ['K.K.'],
};
const COUNTRIES: Readonly<Record<string, string>> = {
  GmbH: 'DE',
  'B.V.': 'NL',
  SAS: 'FR',
  'S.r.l.': 'IT',
  AG: 'DE',
  'S.L.': 'ES',
};

/** Partners of a name with signs that a bank leaves out or replaces. */
const SPECIAL_NAMES: Readonly<Record<Currency, readonly (readonly [name: string, bankName: string])[]>> = {
  USD: [["D'Angelo's Box Office, Inc.", 'DANGELOS BOX OFFICE INC']],
  EUR: [
    ['Müller & Söhne Reisebüro GmbH', 'MULLER SOHNE REISEBURO GMBH'],
    ['Société Générale de Billetterie SAS', 'SOCIETE GENERALE DE BILLETTERIE'],
    ['Größer Konzertkasse GmbH', 'GROESSER KONZERTKASSE GMBH'],
    ['Øresund Færgerejser ApS', 'ORESUND FAERGEREJSER APS'],
    ['Espectáculos Peña y Núñez S.L.', 'ESPECTACULOS PENA Y NUNEZ S.L.'],
  ],
  GBP: [
    ["O'Brien & Daughters Travel Ltd", "O'BRIEN DAUGHTERS TRAVEL LTD"],
    ["St. Mary's-on-Sea Playhouse Ltd", 'ST MARYS ON SEA PLAYHOUSE LTD'],
  ],
  JPY: [],
};

const TWINS: readonly (readonly [east: string, west: string, style: Style])[] = [
  ['Harbour Tickets East Inc', 'Harbour Tickets West Inc', 'orig-co-name'],
  ['Summit Travel North LLC', 'Summit Travel South LLC', 'orig-co-name'],
  ['Alpine Events East Inc', 'Alpine Events West Inc', 'org-srf'],
  ['Metro Arena Group One LLC', 'Metro Arena Group Two LLC', 'org-srf'],
];

const JAPANESE: readonly (readonly [name: string, kana: string])[] = [
  ['Sakura Travel', 'ｻｸﾗﾄﾗﾍﾞﾙ'],
  ['Fuji Tours', 'ﾌｼﾞﾂｱｰｽﾞ'],
  ['Hikari Ticket', 'ﾋｶﾘﾁｹｯﾄ'],
  ['Aozora Events', 'ｱｵｿﾞﾗｲﾍﾞﾝﾄ'],
  ['Midori Kanko', 'ﾐﾄﾞﾘｶﾝｺｳ'],
  ['Tsubame Ryoko', 'ﾂﾊﾞﾒﾘﾖｺｳ'],
  ['Kawase Hall', 'ｶﾜｾﾎｰﾙ'],
  ['Asahi Playguide', 'ｱｻﾋﾌﾟﾚｲｶﾞｲﾄﾞ'],
  ['Nagisa Hotel', 'ﾅｷﾞｻﾎﾃﾙ'],
  ['Hinode Cruise', 'ﾋﾉﾃﾞｸﾙｰｽﾞ'],
  ['Tokiwa Stage', 'ﾄｷﾜｽﾃｰｼﾞ'],
  ['Yamabiko Sports', 'ﾔﾏﾋﾞｺｽﾎﾟｰﾂ'],
  ['Komachi Concert', 'ｺﾏﾁｺﾝｻｰﾄ'],
  ['Minato Line', 'ﾐﾅﾄﾗｲﾝ'],
  ['Shirayuki Resort', 'ｼﾗﾕｷﾘｿﾞｰﾄ'],
  ['Wakaba Bus', 'ﾜｶﾊﾞﾊﾞｽ'],
  ['Kaede Theater', 'ｶｴﾃﾞｼｱﾀｰ'],
  ['Suzuran Arena', 'ｽｽﾞﾗﾝｱﾘｰﾅ'],
  ['Mizuho Outdoor', 'ﾐｽﾞﾎｱｳﾄﾄﾞｱ'],
  ['Akatsuki Air', 'ｱｶﾂｷｴｱ'],
  ['Botan Kabuki', 'ﾎﾞﾀﾝｶﾌﾞｷ'],
  ['Sazanami Marine', 'ｻｻﾞﾅﾐﾏﾘﾝ'],
];

/** Partners with a role, in the order of a currency's places; the others are ordinary. */
const FAMILIES: Readonly<Record<Currency, number>> = { USD: 3, EUR: 2, GBP: 1, JPY: 0 };
const CREDITS: Readonly<Record<Currency, readonly Role[]>> = {
  USD: ['named-credit', 'named-credit', 'unnamed-credit', 'unnamed-credit'],
  EUR: ['named-credit', 'named-credit', 'unnamed-credit'],
  GBP: ['named-credit', 'unnamed-credit'],
  JPY: ['other-credit'],
};
const FLATS: Readonly<Record<Currency, number>> = { USD: 2, EUR: 2, GBP: 0, JPY: 0 };

interface Plan {
  readonly role: Role;
  readonly group?: number;
  readonly name?: string;
  readonly bankName?: string;
  readonly kana?: string;
  readonly style?: Style;
}

function plansOf(currency: Currency): Plan[] {
  const plans: Plan[] = [];
  for (let group = 0; group < FAMILIES[currency]; group += 1)
    plans.push({ role: 'parent', group }, { role: 'child', group }, { role: 'child', group });
  if (currency === 'USD') {
    for (const [group, [east, west, style]] of TWINS.entries())
      plans.push({ role: 'twin-east', group, name: east, style }, { role: 'twin-west', group, name: west, style });
    plans.push({ role: 'provider-first', name: 'Falcon Charters LLC', style: 'orig-co-name' });
    plans.push({ role: 'provider-second', name: 'Orchid Cruises LLC', style: 'orig-co-name' });
    plans.push({ role: 'ordinary', name: 'The Ticket Company LLC' });
  }
  plans.push(...CREDITS[currency].map((role) => ({ role })));
  for (let at = 0; at < FLATS[currency]; at += 1) plans.push({ role: 'flat', style: 'orig-co-name' });
  for (const [name, bankName] of SPECIAL_NAMES[currency]) plans.push({ role: 'special-name', name, bankName });
  while (plans.length < PARTNERS[currency]) plans.push({ role: 'ordinary' });
  if (currency !== 'JPY') return plans;
  return plans.map((plan, at) => {
    const [name, kana] = JAPANESE[at] as readonly [string, string];
    return { ...plan, name: `${name} K.K.`, kana };
  });
}

function ibanOf(draw: Draw, country: string): string {
  const basic = country === 'GB' ? `EXMP${draw.digits(14)}` : draw.digits(18);
  const numeric = (text: string) => text.replace(/[A-Z]/g, (letter) => String(letter.charCodeAt(0) - 55));
  const check = 98n - (BigInt(numeric(`${basic}${country}00`)) % 97n);
  return `${country}${String(check).padStart(2, '0')}${basic}`;
}

/** One in ten payers by ACH has a bank that leaves the company id empty. */
const EMPTY_IDS = 10;

function makePartners(draw: Draw): Partner[] {
  const names = new Set<string>();
  const heads = draw.shuffled(HEADS);
  const ids = draw.shuffled(Array.from({ length: 200 }, (_, at) => `p${String(at + 1).padStart(3, '0')}`));
  let named = 0;
  // A head of two partners has another trade each: only the twins are alike in both.
  const ordinaryName = (currency: Currency): string => {
    const head = heads[named % heads.length] as string;
    named += 1;
    for (;;) {
      const name = `${head} ${draw.one(TRADES)}`;
      if (names.has(name)) continue;
      names.add(name);
      return `${name} ${draw.one(FORMS[currency])}`;
    }
  };
  let companyIds = 0;
  return CURRENCIES.flatMap((currency) => {
    const parents = new Map<number, string>();
    // Each bank has an equal share of the payers.
    const styles = draw.shuffled(plansOf(currency).map((_, at) => STYLES[at % STYLES.length] as Style));
    return plansOf(currency).map((plan, at): Partner => {
      const id = ids.pop() as string;
      if (plan.role === 'parent') parents.set(plan.group as number, id);
      const style = plan.style ?? (styles[at] as Style);
      const name = plan.name ?? ordinaryName(currency);
      const country = countryOf(name, currency);
      const companyId = `${draw.one(['1', '9'])}${draw.digits(9)}`;
      if (currency === 'USD' && style === 'orig-co-name' && plan.role === 'ordinary') companyIds += 1;
      const isEmpty = plan.role === 'ordinary' && style === 'orig-co-name' && companyIds % EMPTY_IDS === 3;
      const usd = isEmpty ? '' : style === 'orig-id' ? draw.digits(10) : companyId;
      return {
        id,
        name,
        bankName: plan.bankName ?? null,
        kana: plan.kana ?? null,
        currency,
        role: plan.role,
        group: plan.group ?? 0,
        parent: plan.role === 'child' ? (parents.get(plan.group as number) as string) : null,
        style,
        account: currency === 'USD' ? usd : currency === 'JPY' ? '' : ibanOf(draw, country),
      };
    });
  }).sort((one, other) => (one.id < other.id ? -1 : 1));
}

function countryOf(name: string, currency: Currency): string {
  if (currency === 'USD') return 'US';
  if (currency === 'GBP') return 'GB';
  if (currency === 'JPY') return 'JP';
  return COUNTRIES[Object.keys(COUNTRIES).find((form) => name.endsWith(form)) ?? 'GmbH'] as string;
}

const ZONES: Readonly<Record<Currency, string>> = {
  USD: 'America/New_York',
  EUR: 'Europe/Berlin',
  GBP: 'Europe/London',
  JPY: 'Asia/Tokyo',
};
const POLICY = 'ticket-protection';

/** The partner as `partner import` reads it. */
export const partnerJson = (partner: Partner): object => ({
  partner_id: partner.id,
  name: partner.name,
  address: {
    line1: '1 Test Street',
    city: 'Testville',
    region: '',
    postal_code: '10001',
    country: countryOf(partner.name, partner.currency),
  },
  invoicing_contact: { name: 'Accounts Payable', email: `ap@${partner.id}.example`, cc: [] },
  currency: partner.currency,
  time_zone: ZONES[partner.currency],
  payment_terms_days: 30,
  ...(partner.parent === null ? {} : { parent: partner.parent }),
  policies: [{ policy_id: POLICY, name: 'Ticket Protection', kind: 'insurance', partner_cut_rate: '0.30' }],
});

/** In major units of the dollar; a yen is a hundred and fiftieth. */
const MEDIAN = 1800;
const YEN = 150;

/** What a partner keeps of a price, in minor units. */
const cutOf = (price: number): number => Math.round(price * 0.3);

/** The prices of a partner's three months, in minor units. The month of a credit note is below zero. */
type Prices = readonly [number, number, number];

function pricesOf(draw: Draw, partner: Partner): Prices {
  const toMinor = (major: number) => Math.round(partner.currency === 'JPY' ? major * YEN : major * 100);
  const scale = Math.min(Math.max(MEDIAN * Math.exp(draw.normal() * 0.8), 220), 40_000) / 0.7;
  const prices = MONTHS.map(() => toMinor(scale * (0.7 + draw.unit() * 0.65))) as [number, number, number];
  switch (partner.role) {
    case 'provider-first':
    case 'provider-second':
      return [60_000, 60_000, 60_000];
    case 'flat':
      return partner.currency === 'USD' ? [75_000, 75_000, 75_000] : [50_000, 50_000, 50_000];
    case 'named-credit':
    case 'unnamed-credit':
    case 'other-credit':
      return [prices[0], -Math.round(Math.min(prices[0], prices[2]) * (0.08 + draw.unit() * 0.3)), prices[2]];
    default:
      return prices;
  }
}

const HEADINGS =
  'kind,partner_id,quote_id,requote_id,reversal_id,enrollment_id,policy_id,currency,accepted_at,' +
  'spotPrice,partnerCut,invoiceAmount';

export function makeLedger(draw: Draw): Ledger {
  const partners = makePartners(draw);
  const prices = new Map(partners.map((partner) => [partner, pricesOf(draw, partner)]));
  // The western twin is the smaller office: its payment looks like a part of the eastern one's invoice.
  for (const west of partners.filter(({ role }) => role === 'twin-west')) {
    const east = partners.find(({ role, group }) => role === 'twin-east' && group === west.group) as Partner;
    const smaller = (price: number) => Math.round(price * (0.55 + draw.unit() * 0.35));
    prices.set(west, (prices.get(east) as Prices).map(smaller) as unknown as Prices);
  }
  const days = new Map(partners.map((partner) => [partner, String(draw.whole(8, 20)).padStart(2, '0')]));
  // A sale of late July is canceled a few days later.
  const dayOf = (partner: Partner, isCredit: boolean) =>
    isCredit ? '04' : partner.role.endsWith('-credit') ? '28' : (days.get(partner) as string);
  const documents = new Map<string, Document>();
  const rows = {} as Record<MonthIndex, string>;
  let invoices = 0;
  let credits = 0;
  for (const month of MONTH_INDEXES) {
    const lines = partners.map((partner) => {
      const price = (prices.get(partner) as Prices)[month];
      const amount = price - cutOf(price);
      const { id, currency } = partner;
      const isCredit = amount < 0;
      if (isCredit) credits += 1;
      else invoices += 1;
      const number = `${isCredit ? 'CN' : 'INV'}-2026-${String(isCredit ? credits : invoices).padStart(6, '0')}`;
      documents.set(`${id} ${month}`, { number, partner, month, currency, amount });
      // A credit note takes back a part of the first month's sale.
      const quote = `q-${id}-${isCredit ? 0 : month}`;
      const enrollment = `e-${id}-${isCredit ? 0 : month}`;
      const at = `${MONTHS[month]}-${dayOf(partner, isCredit)}T12:00:00Z`;
      const known = [isCredit ? 'reversal' : 'quote_accepted', id, quote, '', isCredit ? `r-${id}` : '', enrollment];
      const amounts = [price, cutOf(price), amount].map((minor) => decimal(minor, currency));
      return [...known, POLICY, currency, at, ...amounts].join(',');
    });
    rows[month] = `${[HEADINGS, ...lines].join('\n')}\n`;
  }
  if (credits !== CREDIT_NOTES) throw new Error(`there are ${credits} credit notes`);
  return {
    partners,
    documents: [...documents.values()],
    document: (partner, month) => documents.get(`${partner.id} ${month}`) as Document,
    rows,
  };
}
