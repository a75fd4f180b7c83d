// A fault table for the close of a month: 40 partners, 24 honest months, seven kinds of faulty deliveries.
// Deterministic: seeded, with plain arithmetic; no clock, no locale, no zone data. README.md says what is judged.
export const COLUMNS = [
  ...(['kind', 'partner_id', 'quote_id', 'requote_id', 'reversal_id', 'enrollment_id', 'policy_id'] as const),
  ...(['currency', 'accepted_at', 'spotPrice', 'partnerCut', 'invoiceAmount'] as const),
  ...(['order_reference', 'cover_from', 'cover_to'] as const),
];
export type Row = Record<(typeof COLUMNS)[number], string>;
export type Variance = 'steady' | 'seasonal' | 'growing' | 'shrinking' | 'weekly' | 'irregular';
type Terms = { policy_id: string; partner_cut_rate: string };
type Habits = { traits: string[]; time_zone: string; offset: number; currency: string; policies: Terms[] };
/** size: usual rows a month (growing, shrinking: of the first month); offset: minutes; ids: how its quote ids look. */
export type Partner = Habits & { partner_id: string; number: number; variance: Variance; size: number; ids: string };
export type Kind = 'missing' | 'truncated' | 'thinned' | 'repeated' | 'doubled' | 'mangled' | 'shifted';
export type Fault = { id: string; kind: Kind; degree: string; partner_id: string; month: string } & {
  deliveries: Row[][]; // what arrives, one list for each file, in the order of arrival
  stated: { count: number; invoiceAmount: string }; // the partner's true totals
  expected: { withTotals: 'named'; without: 'named' | 'either' | 'not decidable' };
};
/** An empty month: all months; no ids: the month as a whole. */
export type Peculiarity = { kind: string; partner_id: string; month: string; quote_ids: string[] };

const two = (n: number): string => String(n).padStart(2, '0');
const four = (n: number): string => String(n).padStart(4, '0');
const sum = (list: number[]): number => list.reduce((a, b) => a + b, 0);
const at = <T>(list: readonly T[], i: number): T => list[i % list.length] as T;
const DAY = 86400000;
export const MONTHS = Array.from({ length: 24 }, (_, i) => `${2024 + Math.floor(i / 12)}-${two((i % 12) + 1)}`);
export const VARIANCES: Variance[] = ['steady', 'seasonal', 'growing', 'shrinking', 'weekly', 'irregular'];
function hash(text: string): number {
  let h = 2166136261;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  h = Math.imul(h ^ (h >>> 16), 2246822507);
  h = Math.imul(h ^ (h >>> 13), 3266489909);
  return (h ^ (h >>> 16)) >>> 0;
}
function generator(key: string): () => number {
  let k = 0;
  return () => hash(`${key} ${k++}`) / 4294967296;
}
function shuffled<T>(list: readonly T[], key: string): T[] {
  const dealt = list.map((x, k) => ({ x, card: hash(`${key} ${k}`) }));
  return dealt.sort((a, b) => a.card - b.card).map(({ x }) => x);
}

// ---- partners
const ZONES = `Etc/UTC 0; America/Phoenix -420; Africa/Lagos 60; Asia/Tokyo 540; America/Bogota -300; Asia/Kolkata 330;
  Africa/Johannesburg 120; Australia/Brisbane 600`.split(/;\s*/);
// The partner's share in percent; prices in cents: one of the list, and up to the spread more.
type Policy = { policy_id: string; rate: number; list: number[]; spread: number };
const POLICIES: Policy[] = [
  { policy_id: 'ticket-protection', rate: 30, list: [450], spread: 5900 },
  { policy_id: 'travel-delay', rate: 25, list: [900], spread: 9000 },
  { policy_id: 'registration-refund', rate: 15, list: [750, 1200, 1500, 2100], spread: 0 },
  { policy_id: 'damage-waiver', rate: 40, list: [1995, 2995], spread: 0 },
  { policy_id: 'device-care', rate: 20, list: [990, 1490], spread: 0 },
];
// Size, look of ids, policies, traits. enr: enrollment ids; ref: order references; tickets: orders of four; bundle: two
// policies in one checkout; sub: subscriptions; run: all renewed in one nightly run; pairs: ids that differ by case
// alone; equal: equal sales in one second, without enrollment and reference; late: last rows come a month later; rev:
// reversals; jan30: January at 30 % of the usual rows; ms: times with milliseconds; cover: dates of cover.
const SPEC: Record<Variance, string> = {
  steady: `400 long ticket+refund enr ref tickets ms; 120 zeros waiver enr; 60 code care sub enr cover; 3 zeros waiver;
    45 base62 refund equal; 40 long ticket ref; 30 zeros refund equal; 12 code care sub run enr`,
  seasonal: `260 code ticket enr ref tickets rev late; 110 zeros waiver enr ms jan30; 80 base62 ticket+delay enr pairs;
    50 long ticket+delay enr bundle; 40 zeros delay; 35 code delay enr jan15; 24 base62 ticket ref jan20; 20 long care`,
  growing: `60 code ticket enr ref tickets late; 40 zeros ticket+waiver enr rev; 30 base62 ticket enr pairs;
    25 long refund equal; 20 zeros delay ref; 10 code waiver enr ms`,
  shrinking: `200 long delay enr late; 90 code ticket enr ref tickets rev; 60 zeros delay ms; 30 zeros waiver enr;
    40 base62 ticket+delay enr pairs bundle`,
  weekly: `300 zeros ticket enr ref tickets rev ms; 150 code delay enr late; 70 long delay; 50 base62 ticket ref;
    40 zeros ticket+delay enr ref bundle; 30 code refund enr; 25 long delay enr cover`,
  irregular: `25 zeros delay enr; 18 code refund equal; 14 long delay enr ms; 9 base62 delay ref; 6 zeros waiver enr;
    4 code delay`,
};
/** By the id of a policy, or a word of it. */
const policyOf = (word: string): Policy => POLICIES.filter((x) => x.policy_id.includes(word))[0] as Policy;
const SPECS = VARIANCES.flatMap((variance) => SPEC[variance].split(/;\s*/).map((text) => ({ variance, text })));
export const PARTNERS: Partner[] = SPECS.map(({ variance, text }, i) => {
  const [size, ids = '', words = '', ...traits] = text.split(' ');
  const [time_zone = '', offset] = at(ZONES, i * 3 + Math.floor(i / 8)).split(' ');
  const policies = words.split('+').map(policyOf);
  return {
    ...{ partner_id: `ft-${two(i + 1)}-${variance}`, number: i + 1, variance, size: Number(size), ids, traits },
    ...{ time_zone, offset: Number(offset), currency: at(['USD', 'EUR', 'GBP', 'CAD'], hash(time_zone) + i) },
    policies: policies.map(({ policy_id, rate }) => ({ policy_id, partner_cut_rate: `0.${rate}` })),
  };
});
const has = (p: Partner, trait: string): boolean => p.traits.includes(trait);

// ---- rows
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'.split('');
const base62 = (n: number, width: number): string =>
  width === 0 ? '' : base62(Math.floor(n / 62), width - 1) + at(BASE62, n);
/** n: 0–4999 honest sales, from 5000 the other ids of a fault. Every id is given once in the whole table. */
function quoteId(p: Partner, i: number, n: number): string {
  const tail = two(p.number) + two(i) + four(n);
  const h = hash(`id ${tail}`);
  if (p.ids === 'zeros') return `00${tail}`;
  if (p.ids === 'code') return `q-${h.toString(16).padStart(8, '0')}-${tail}`;
  if (p.ids === 'base62') return at(BASE62, 10 + (n % 52)) + base62(h, 4) + base62(Number(tail), 5);
  return `${100000 + (((i * 10000 + n) * 7919) % 900000)}${two(p.number)}${two(i)}0${four(n)}`;
}
const centsOf = (amount: string): number => Number(amount.replace('.', ''));
const money = (c: number): string => (c < 0 ? `-${money(-c)}` : `${Math.floor(c / 100)}.${two(c % 100)}`);
function amounts(spot: number, policy_id: string) {
  const cut = Math.floor((spot * policyOf(policy_id).rate + 50) / 100);
  return { spotPrice: money(spot), partnerCut: money(cut), invoiceAmount: money(spot - cut) };
}
function timeText(p: Partner, t: number): string {
  const local = new Date(t + p.offset * 60000).toISOString().slice(0, has(p, 'ms') ? 23 : 19);
  const o = Math.abs(p.offset);
  return local + (o === 0 ? 'Z' : `${p.offset < 0 ? '-' : '+'}${two(Math.floor(o / 60))}:${two(o % 60)}`);
}
type Sale = { t: number; n: number; mark: string; row: Row }; // the mark: kind and number of an honest peculiarity
type Basket = { t: number; n: number; spot: number; policy_id: string; enr?: string; ref?: string; mark: string };
function sale(p: Partner, i: number, { t, n, spot, policy_id, enr = '', ref = '', mark }: Basket): Sale {
  const cover = (days: number): string => (has(p, 'cover') ? timeText(p, t + days * DAY).slice(0, 10) : '');
  const { partner_id, currency } = p;
  const ids = { kind: 'quote_accepted', partner_id, quote_id: quoteId(p, i, n), requote_id: '', reversal_id: '' };
  const more = { accepted_at: timeText(p, t), order_reference: ref, cover_from: cover(0), cover_to: cover(29) };
  return { t, n, mark, row: { ...ids, enrollment_id: enr, policy_id, currency, ...more, ...amounts(spot, policy_id) } };
}

// ---- honest months
const SEASON = [0.6, 0.65, 0.75, 0.9, 1.1, 1.35, 1.5, 1.45, 1.15, 0.95, 0.8, 0.7]; // odd numbers: half a year later
const [WEEKEND, OFFICE, FLAT] = ['20 4 4 5 8 22 26', '0 9 9 9 9 9 0', '9 10 10 9 9 11 10']; // Sunday first
const begin = (p: Partner, i: number): number => Date.UTC(2024, i, 1) - p.offset * 60000; // local midnight
function dayWeights(p: Partner, i: number): number[] {
  const week = (p.variance !== 'weekly' ? FLAT : p.number % 2 === 0 ? OFFICE : WEEKEND).split(' ').map(Number);
  const days = (Date.UTC(2024, i + 1, 1) - Date.UTC(2024, i, 1)) / DAY;
  return Array.from({ length: days }, (_, d) => at(week, new Date(Date.UTC(2024, i, d + 1)).getUTCDay()));
}

function volume(p: Partner, i: number, random: () => number): number {
  const r = random();
  let n = p.size;
  for (let k = 0; k < i; k++) n *= p.variance === 'growing' ? 1.04 : p.variance === 'shrinking' ? 0.96 : 1;
  if (p.variance === 'steady') n *= p.size < 10 ? 1 : 0.97 + 0.06 * r;
  else if (p.variance === 'irregular') n *= 0.55 + 0.8 * r + (random() < 0.1 ? 0.6 : 0);
  else n *= 0.93 + 0.14 * r;
  if (p.variance === 'weekly') n *= ((sum(dayWeights(p, i)) / sum(dayWeights(p, i).slice(0, 28))) * 28) / 30.4;
  if (p.variance === 'seasonal') n *= at(SEASON, i + (p.number % 2) * 6);
  const january = p.traits.find((trait) => trait.startsWith('jan'));
  if (january !== undefined && i % 12 === 0) n = (p.size * Number(january.slice(3)) * (0.95 + 0.1 * r)) / 100;
  return Math.max(3, Math.round(n));
}

const byTime = (a: Sale, b: Sale): number => a.t - b.t || a.n - b.n;
const cache = new Map<string, Sale[]>();
/** All true sales of a month, in the order of time, whenever they are delivered. */
function sales(p: Partner, i: number): Sale[] {
  const key = `${p.partner_id} ${i}`;
  const list = cache.get(key) ?? (has(p, 'sub') ? renewals(p, i) : shopping(p, i, generator(key))).sort(byTime);
  cache.set(key, list);
  return list;
}

function renewals(p: Partner, i: number): Sale[] {
  const out: Sale[] = [];
  for (let n = 0; n < p.size + Math.floor((i * p.size) / 120); n++) {
    let holder = 0;
    for (let k = 1; k <= i; k++) if (hash(`${p.partner_id} leaves ${n} ${k}`) % 40 === 0) holder++;
    if (hash(`${p.partner_id} pauses ${n} ${i}`) % 33 === 0) continue;
    const random = generator(`${p.partner_id} ${n} ${holder}`);
    const [day, second] = has(p, 'run') ? [0, 7200 + (n % 4)] : [Math.floor(random() * 28), 10800 + (n % 900)];
    const { policy_id, list } = policyOf('care');
    const [spot, t] = [at(list, Math.floor(random() * 2)), begin(p, i) + day * DAY + second * 1000];
    const mark = has(p, 'run') ? 'a run of renewals in few seconds|' : 'the same enrollments as the month before|';
    out.push(sale(p, i, { t, n, spot, policy_id, enr: `e-${two(p.number)}-${four(n)}-${holder}`, mark }));
  }
  return out;
}

function shopping(p: Partner, i: number, random: () => number): Sale[] {
  const below = (n: number): number => Math.floor(random() * n);
  const priced = ({ list, spread }: Policy): number => at(list, below(list.length)) + below(below(spread) + 1);
  const total = volume(p, i, random);
  const weights = dayWeights(p, i);
  const out: Sale[] = [];
  while (out.length < total) {
    const n = out.length;
    let rest = random() * sum(weights);
    let day = 0;
    while (rest >= at(weights, day) && day < weights.length - 1) rest -= at(weights, day++);
    const t = begin(p, i) + day * DAY + (25200 + below(54000)) * 1000 + (has(p, 'ms') ? below(1000) : 0);
    const { policy_id } = at(p.policies, below(p.policies.length));
    const tail = two(p.number) + two(i) + four(n);
    const ref = has(p, 'ref') ? `R${(hash(`ref ${tail}`) % 9000) + 1000}-${tail}` : '';
    const one = { n, t, policy_id, spot: priced(policyOf(policy_id)), ref, mark: '' };
    const push = (k: number, enrollment: number, more: Partial<Basket> = {}): void => {
      const enr = has(p, 'enr') ? `e-${two(p.number)}${two(i)}${four(n + enrollment)}` : '';
      out.push(sale(p, i, { ...one, n: n + k, enr, ...more }));
    };
    const [dice, room] = [random(), total - n];
    if (has(p, 'tickets') && dice < 0.05 && room >= 4)
      for (let k = 0; k < 4; k++) push(k, k, { mark: `four tickets of one order|${n}` });
    else if (has(p, 'bundle') && dice < 0.12 && room >= 2)
      for (const [k, { policy_id: id }] of p.policies.entries())
        push(k, 0, { policy_id: id, spot: priced(policyOf(id)), mark: `two policies in one checkout|${n}` });
    else if (has(p, 'equal') && n === 0)
      for (let k = 0; k < 2; k++) push(k, k, { mark: 'two equal sales in one second|' });
    else push(0, 0);
  }
  for (const n of has(p, 'pairs') ? [3, 9] : []) {
    const [a, b] = [at(out, n - 1), at(out, n)];
    b.row.quote_id = a.row.quote_id.replace(/[a-z]/gi, (c) => (c < 'a' ? c.toLowerCase() : c.toUpperCase()));
    a.mark = b.mark = `ids that differ by case alone|${n}`;
  }
  return out;
}

/** The month's last sales, which are delivered with the next month; orders stay whole. */
function lateSales(p: Partner, i: number): Sale[] {
  if (!has(p, 'late') || i < 0 || i > 22 || (i + p.number) % 5 !== 2) return [];
  const from = at(sales(p, i), sales(p, i).length - 1 - (hash(`${p.partner_id} late ${i}`) % 4));
  return sales(p, i).filter((s) => s.t >= from.t);
}
function delivered(p: Partner, i: number): Sale[] {
  const own = sales(p, i).slice(0, sales(p, i).length - lateSales(p, i).length);
  if (i === 0) return own;
  const late = lateSales(p, i - 1).map((s) => ({ ...s, mark: 'late rows|' }));
  const random = generator(`${p.partner_id} reversals ${i}`);
  const before = sales(p, i - 1).slice(0, sales(p, i - 1).length - late.length);
  const back = before.flatMap(({ row, n }) => {
    if (random() >= 0.02 || !has(p, 'rev')) return [];
    const t = begin(p, i) + Math.floor(random() * 27 * 86400) * 1000;
    const minus = { spotPrice: `-${row.spotPrice}`, partnerCut: `-${row.partnerCut}` };
    const more = { kind: 'reversal', reversal_id: `rv-${row.quote_id}`, accepted_at: timeText(p, t) };
    return [{ t, n, mark: '', row: { ...row, ...more, ...minus, invoiceAmount: `-${row.invoiceAmount}` } }];
  });
  return [...late, ...own, ...back].sort(byTime);
}
/** What the partner delivers for a month when nothing goes wrong. */
export const honestMonth = (partner: Partner, month: string): Row[] =>
  delivered(partner, MONTHS.indexOf(month)).map((s) => ({ ...s.row }));
export const toCsv = (rows: Row[]): string =>
  [COLUMNS, ...rows.map((row) => COLUMNS.map((column) => row[column]))].map((line) => `${line.join(',')}\n`).join('');
export function totals(rows: Row[]): Fault['stated'] {
  return { count: rows.length, invoiceAmount: money(sum(rows.map((row) => centsOf(row.invoiceAmount)))) };
}

// ---- honest peculiarities: none of them may be named
export const PECULIARITIES: Peculiarity[] = PARTNERS.flatMap((p) => {
  const out: Peculiarity[] = [];
  const add = (kind: string, month: string, quote_ids: string[] = []): unknown =>
    out.push({ kind, partner_id: p.partner_id, month, quote_ids });
  if (p.variance === 'growing' || p.variance === 'shrinking') add(`a ${p.variance} partner`, '');
  if (p.traits.some((trait) => trait.startsWith('jan'))) add('a drop in January as in the year before', '2025-01');
  MONTHS.forEach((month, i) => {
    const marks = new Map<string, string[]>();
    for (const s of delivered(p, i)) if (s.mark) marks.set(s.mark, [...(marks.get(s.mark) ?? []), s.row.quote_id]);
    for (const [mark, quote_ids] of marks) add(mark.split('|')[0] ?? '', month, quote_ids);
  });
  return out;
});

// ---- faults
const few = (kind: string, mode: string): string => `
${[80, 60, 40].map((n) => `${kind} | ${n} % left | 12 | any six | ${mode} ${n}% | - | only | either`).join('\n')}
${kind} | 10 % left | 6 | any tenth | ${mode} tenth | - | only | named
${kind} | one row missing | 6 | any | ${mode} -1 | - | only | not decidable`;
const mangled = (text: string, where: string, change: string): string => `
mangled | ${text}, all rows | 3 | ${where} | any 100% | ${change} | second file | named
mangled | ${text}, one row | 1 | ${where} | any 1 | ${change} | second file | named
mangled | ${text}, all rows, only the day kept | 1 | ${where} | any 100% | ${change} dayOnly | second file | named
mangled | ${text}, one row, only the day kept | 1 | ${where} | any 1 | ${change} dayOnly | second file | named`;
// kind | degree | how many | partners and months | rows touched | how they change | what arrives | named without totals
const PLAN = `
missing | no file | 12 | any | first 0 | - | nothing | named
missing | a file with a header only | 4 | any | first 0 | - | only | named
missing | no file, second month | 1 | any m1 | first 0 | - | nothing | either
missing | no file, first month | 1 | any m0 | first 0 | - | nothing | not decidable
${few('truncated', 'first')}${few('thinned', 'any')}
truncated | 10 % left, third month | 1 | any tenth m2 | first tenth | - | only | not decidable
repeated | enrollment ids kept | 4 | enr !sub | any 100% | newId | second file | named
repeated | no enrollment ids | 5 | !enr | any 100% | newId | second file | named
repeated | enrollment ids left out the second time | 2 | enr !sub | any 100% | newId blank | second file | named
repeated | enrollment ids and references new as well | 2 | enr !sub | any 100% | newId allNew | second file | named
repeated | the second time in UTC | 2 | zone | any 100% | newId utc | second file | named
repeated | in another order of rows | 2 | six | any 100% | newId | shuffled file | named
repeated | subscriptions | 1 | sub | any 100% | newId | second file | named
repeated | both in one file | 1 | six | any 100% | newId | same file | named
repeated | second month | 1 | six m1 | any 100% | newId | second file | named
doubled | one row | 3 | enr !sub | any 1 | newId | beside | named
doubled | three rows | 3 | enr !sub | any 3 | newId | beside | named
doubled | a tenth of the rows | 2 | enr !sub tenth | any 10% | newId | beside | named
doubled | every row | 2 | enr !sub | any 100% | newId | beside | named
doubled | one row, same reference, no enrollment | 2 | ref !enr | any 1 | newId | beside | named
doubled | one row, other milliseconds | 1 | enr ms | any 1 | newId otherMs | beside | named
doubled | one row, in UTC | 1 | enr zone | any 1 | newId utc | beside | named
doubled | one row, in a second file | 1 | enr !sub | any 1 | newId | second file | named
doubled | every row, with orders of four, at the end | 1 | tickets | any 100% | newId | same file | named
doubled | one row, no second sign | 2 | !enr !ref | any 1 | newId | beside | not decidable
${mangled('leading zeros lost', 'zeros', 'noZeros')}${mangled('upper case', 'code', 'upper')}
${mangled('exponent', 'long', 'exponent')}${mangled('lower case', 'base62 !pairs', 'lower')}
mangled | exponent of three digits, one row | 1 | long | any 1 | shortExponent | second file | named
shifted | the month before, enrollment ids kept | 3 | enr !sub !late | back 1 | newId moved | only | either
shifted | the month before, all ids new | 2 | enr !sub !late | back 1 | newId allNew moved | only | either
shifted | the month before, no enrollment ids | 2 | six !enr !ref !late | back 1 | newId moved | only | either
shifted | the month before, the same quote ids | 2 | six !late | back 1 | moved | only | either
shifted | the month before, subscriptions | 1 | sub | back 1 | newId moved | only | not decidable
shifted | the same month of the year before | 1 | enr !sub !late m16 | back 12 | newId moved | only | either
shifted | all amounts × 100 | 1 | six | any 100% | 100 | instead | either
shifted | all amounts ÷ 100 | 1 | six | any 100% | 0.01 | instead | either
shifted | all amounts × 1.19 | 2 | six | any 100% | 1.19 | instead | either
shifted | one row × 10 | 2 | six | any 1 | 10 | instead | either
shifted | one row, our share 10.00 too high | 1 | six | any 1 | ours | instead | either
shifted | one row, three cents too high | 1 | six | any 1 | cents | instead | not decidable`;
/** Every fair meaning of "the usual rows" before month i; the smallest counts. */
export function usual(p: Partner, i: number): number {
  const counts = MONTHS.slice(0, i).map((_, k) => delivered(p, k).length);
  const lists = [3, 6, 12].map((n) => counts.slice(-n).sort((a, b) => a - b));
  const medians = lists.map((list) => at(list, Math.floor((list.length - 1) / 2)));
  return Math.min(...medians, sum(counts.slice(-12)) / Math.min(i, 12), i < 12 ? Infinity : at(counts, i - 12));
}
type Case = { p: Partner; i: number; rows: Row[]; next: number }; // honest rows; number of the next new id
const tenth = ({ p, i, rows }: Case): number => Math.floor(Math.min(rows.length, usual(p, i)) / 10);
/** Where a fault may be: one of these words, a look of ids, a trait, or a month. `any` lets reversals in. */
function fits(where: string[], c: Case): boolean {
  const { p, i, rows } = c;
  const month = where.find((word) => /^m\d/.test(word));
  if ((month === undefined ? i < 3 : month !== `m${i}`) || lateSales(p, i - 1).length > 0) return false;
  const is = (word: string): boolean => {
    if (word === 'six') return rows.length > 5;
    if (word === 'tenth') return tenth(c) > 0;
    if (word === 'zone') return p.offset !== 0;
    return word === month || word === 'any' || p.ids === word || has(p, word);
  };
  const all = where.every((word) => (word.startsWith('!') ? !is(word.slice(1)) : is(word)));
  return all && (where.includes('any') || !has(p, 'rev'));
}
function touched(c: Case, which: string, key: string): Row[] {
  const [mode, amount = ''] = which.split(' ');
  if (mode === 'back') return honestMonth(c.p, at(MONTHS, c.i - Number(amount)));
  const n = Number(amount.replace('%', ''));
  const count = amount === 'tenth' ? tenth(c) : amount.endsWith('%') ? Math.floor((c.rows.length * n) / 100) : n;
  const kept = new Set((mode === 'first' ? c.rows : shuffled(c.rows, key)).slice(0, count)); // -1: all but one
  return c.rows.filter((row) => kept.has(row));
}
const none = { enrollment_id: '', order_reference: '' };
const more = (amount: string, cents: number): string => money(centsOf(amount) + cents);
const renamed = (text: string): string => (text === '' ? '' : `N${text}`);
const times = (row: Row, by: number) => amounts(Math.max(2, Math.round(centsOf(row.spotPrice) * by)), row.policy_id);
/** Besides these a number: the factor of the amounts. */
const CHANGES: Record<string, (row: Row, c: Case) => Partial<Row>> = {
  '-': () => ({}),
  newId: (_row, c) => ({ quote_id: quoteId(c.p, c.i, c.next++) }),
  blank: () => ({ enrollment_id: '' }),
  allNew: (row) => ({ enrollment_id: renamed(row.enrollment_id), order_reference: renamed(row.order_reference) }),
  utc: (row) => ({ accepted_at: new Date(row.accepted_at).toISOString() }),
  otherMs: (row) => ({ accepted_at: row.accepted_at.replace(/\.\d/, (x) => `.${9 - Number(x.slice(1))}`) }),
  noZeros: (row) => ({ quote_id: row.quote_id.replace(/^0+/, '') }),
  upper: (row) => ({ quote_id: row.quote_id.toUpperCase() }),
  lower: (row) => ({ quote_id: row.quote_id.toLowerCase() }),
  exponent: (row) => ({ quote_id: Number(row.quote_id).toExponential(5).toUpperCase() }),
  shortExponent: (row) => ({ quote_id: Number(row.quote_id).toExponential(2).toUpperCase() }),
  dayOnly: ({ accepted_at: t }) => ({ ...none, accepted_at: t.replace(/(T\d\d:\d\d):[\d.]+/, '$1:00') }),
  moved: ({ accepted_at: t }, { p, i }) => {
    const day = Math.min(Number(t.slice(8, 10)), dayWeights(p, i).length);
    return { accepted_at: `${at(MONTHS, i)}-${two(day)}${t.slice(10)}` };
  },
  ours: (row) => ({ invoiceAmount: more(row.invoiceAmount, 1000), spotPrice: more(row.spotPrice, 1000) }),
  cents: (row) => amounts(centsOf(row.spotPrice) + 3, row.policy_id),
};
function arriving(c: Case, rows: Row[], words: string[], how: string): Row[][] {
  const changed = (row: Row): Row =>
    words.reduce((out, word) => Object.assign(out, CHANGES[word]?.(out, c) ?? times(out, Number(word))), { ...row });
  const more = rows.map(changed);
  if (how === 'nothing') return [];
  if (how === 'only') return [more];
  if (how === 'same file') return [[...c.rows, ...more]];
  if (how.endsWith('file')) return [c.rows, how === 'second file' ? more : shuffled(more, how)];
  const both = (row: Row, k: number): Row[] => (how === 'beside' ? [row, at(more, k)] : [at(more, k)]);
  return [c.rows.flatMap((row) => (rows.includes(row) ? both(row, rows.indexOf(row)) : [row]))];
}
/** Goes through the kinds of variance in turn, the least used partners first; no partner's month twice. */
export const FAULTS: Fault[] = [];
const places = PARTNERS.flatMap((p) => MONTHS.map((month, i) => ({ p, i, rows: honestMonth(p, month), next: 5000 })));
const uses = (partner_id: string, month = '2'): number =>
  FAULTS.filter((f) => f.partner_id === partner_id && f.month.startsWith(month)).length;
for (const line of PLAN.split('\n').filter(Boolean)) {
  const [kind = '', degree = '', many, where = '', which = '', words = '', how = '', without] = line.split(' | ');
  const same = (): number => FAULTS.filter((f) => f.kind === kind).length;
  const [start, last] = [same(), same() + Number(many)];
  for (let k = 0; same() < last; k++) {
    if (k > 99) throw new Error(`fault-table: too few places for ${line}`);
    const variance = at(VARIANCES, start + hash(kind) + k);
    const inside = places.filter((c) => c.p.variance === variance && uses(c.p.partner_id, MONTHS[c.i]) === 0);
    const free = shuffled(inside, `${line} ${k}`).filter((c) => fits(where.split(' '), c));
    const [c] = free.sort((a, b) => uses(a.p.partner_id) - uses(b.p.partner_id));
    if (c === undefined) continue;
    const deliveries = arriving(c, touched(c, which, line), words.split(' '), how);
    const place = { partner_id: c.p.partner_id, month: at(MONTHS, c.i), deliveries, stated: totals(c.rows) };
    const expected = { withTotals: 'named' as const, without: without as Fault['expected']['without'] };
    FAULTS.push({ id: `${kind}-${two(same() + 1)}`, kind: kind as Kind, degree, ...place, expected });
  }
}
