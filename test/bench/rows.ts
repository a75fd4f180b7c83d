/**
 * Partners and rows as a large operator has them: few partners sell most, in several currencies, zones and policies; one
 * acceptance in 25 is extended by a requote, one in 25 reversed. The same arguments give the same files.
 */
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { finished } from 'node:stream/promises';
import { seeded } from '../support/random.ts';

const PLACES = [
  { time_zone: 'America/New_York', currency: 'USD', country: 'US', share: 40 },
  { time_zone: 'America/Los_Angeles', currency: 'USD', country: 'US', share: 20 },
  { time_zone: 'Europe/London', currency: 'GBP', country: 'GB', share: 15 },
  { time_zone: 'Europe/Berlin', currency: 'EUR', country: 'DE', share: 15 },
  { time_zone: 'Asia/Tokyo', currency: 'JPY', country: 'JP', share: 7 },
  { time_zone: 'Asia/Kuwait', currency: 'KWD', country: 'KW', share: 3 },
] as const;

/** Each place as often as it has hundredths. */
const PLACES_BY_SHARE = PLACES.flatMap((place) => Array.from({ length: place.share }, () => place));

const POLICIES = [
  { policy_id: 'ticket-protection', name: 'Ticket Protection', kind: 'insurance', partner_cut_rate: '0.30' },
  { policy_id: 'parking', name: 'Parking Refund', kind: 'non_insurance', partner_cut_rate: '0.20' },
  { policy_id: 'travel-delay', name: 'Travel Delay Cover', kind: 'insurance', partner_cut_rate: '0.25' },
  { policy_id: 'accident', name: 'Event Accident Cover', kind: 'insurance', partner_cut_rate: '0.35' },
] as const;

const MINOR_DIGITS: Readonly<Record<string, number>> = { JPY: 0, KWD: 3 };

interface Seller {
  readonly id: string;
  readonly currencies: readonly string[];
  readonly policies: number;
  /** Takes back in every even month what it sold in the odd one before, and sells nothing else: it gets credit notes. */
  readonly seasonal: boolean;
}

function sellers(count: number): { sellers: Seller[]; file: object[] } {
  const { random } = seeded(20260701);
  const file: object[] = [];
  const made = Array.from({ length: count }, (_, index): Seller => {
    const place = PLACES_BY_SHARE[Math.floor(random() * 100)] as (typeof PLACES)[number];
    const id = `partner-${String(index + 1).padStart(5, '0')}`;
    const policies = 1 + Math.floor(random() * POLICIES.length);
    file.push({
      partner_id: id,
      name: `Partner ${index + 1} Events`,
      address: {
        line1: `${index + 1} Quay Street`,
        line2: '',
        city: 'Springfield',
        region: '',
        postal_code: '10004',
        country: place.country,
      },
      invoicing_contact: { name: 'Accounts Payable', email: `ap@${id}.example`, cc: [] },
      currency: place.currency,
      time_zone: place.time_zone,
      payment_terms_days: 30,
      policies: POLICIES.slice(0, policies),
      ...(index % 20 === 19 && {
        arrangement: 'connected_account',
        connected_account_id: `acct_${index + 1}`,
        merchant_of_record: 'platform',
        split: 'real_time',
      }),
    });
    const second = random() < 0.1 && place.currency !== 'USD' ? ['USD'] : [];
    return { id, currencies: [place.currency, ...second], policies, seasonal: index % 100 === 98 };
  });
  return { sellers: made, file };
}

export async function writePartners(path: string, count: number): Promise<void> {
  await writeFile(path, JSON.stringify(sellers(count).file));
}

/** Whole minor units as a plain decimal: 1999, 2 digits → 19.99 */
function decimal(minor: number, digits: number): string {
  const text = String(Math.abs(minor)).padStart(digits + 1, '0');
  const whole = text.slice(0, text.length - digits);
  return `${minor < 0 ? '-' : ''}${whole}${digits > 0 ? `.${text.slice(-digits)}` : ''}`;
}

/** A seller's rows of a season: in an odd month three quotes, in the even one after it their reversals. */
function seasonalRows(seller: Seller, year: number, number: number, at: string): string[] {
  const odd = number % 2 === 1;
  const [currency = ''] = seller.currencies;
  const digits = MINOR_DIGITS[currency] ?? 2;
  return [1, 2, 3].map((index) => {
    const quote = `${seller.id}_${year}_${odd ? number : number - 1}_${index}`;
    const [spot, cut] = odd ? [9000, 2700] : [-9000, -2700];
    return (
      `{"kind":"${odd ? 'quote_accepted' : 'reversal'}",${odd ? '' : `"reversal_id":"rv_${quote}",`}` +
      `"partner_id":"${seller.id}","quote_id":"q_${quote}","enrollment_id":"en_${quote}",` +
      `"policy_id":"${POLICIES[0].policy_id}","currency":"${currency}","accepted_at":"${at}",` +
      `"spotPrice":"${decimal(spot, digits)}","partnerCut":"${decimal(cut, digits)}",` +
      `"invoiceAmount":"${decimal(spot - cut, digits)}"}\n`
    );
  });
}

const BYTES_AT_ONCE = 256 * 1024;
/** Requotes and reversals are of one of the last so many quotes: nobody takes back what was sold in another year. */
const REMEMBERED = 5000;

/**
 * Writes a month's rows as NDJSON, in order of time. They lie in the month, or on its last day, in every zone of the
 * partners.
 */
export async function writeRows(
  path: string,
  month: string,
  rows: number,
  partners: number,
  { lastDay = false }: { readonly lastDay?: boolean } = {},
): Promise<void> {
  const { sellers: everyone } = sellers(partners);
  const { random } = seeded(Number(month.replace('-', '')));
  const output = createWriteStream(path);
  const ended = finished(output);
  const [year = 0, number = 0] = month.split('-').map(Number);
  // From 15 hours after the month begins in UTC to 13 hours before it ends there.
  const from = lastDay ? Date.UTC(year, number, 0, 8) : Date.UTC(year, number - 1, 1, 15);
  const to = Date.UTC(year, number, 0, 11);
  const id = (prefix: string) =>
    `${prefix}_${Array.from({ length: 3 }, () =>
      Math.floor(random() * 36 ** 6)
        .toString(36)
        .padStart(6, '0'),
    ).join('')}`;
  const recent: { text: string; minor: number; rate: number; digits: number }[] = [];
  const early = new Date(from).toISOString();
  const seasonal = everyone
    .filter((seller) => seller.seasonal)
    .flatMap((each) => seasonalRows(each, year, number, early));
  const steady = everyone.filter((seller) => !seller.seasonal);
  let pending = seasonal.slice(0, rows).join('');
  for (let index = seasonal.length; index < rows; index += 1) {
    const at = new Date(from + Math.floor(((to - from) * index) / rows)).toISOString();
    const amounts = (spot: number, rate: number, digits: number) => {
      const cut = Math.sign(spot) * Math.floor((Math.abs(spot) * rate) / 100);
      return (
        `"accepted_at":"${at}","spotPrice":"${decimal(spot, digits)}","partnerCut":"${decimal(cut, digits)}",` +
        `"invoiceAmount":"${decimal(spot - cut, digits)}"}\n`
      );
    };
    const place = Math.floor(random() * recent.length);
    const chance = random();
    const quote = recent[place];
    if (quote !== undefined && chance < 0.04) {
      const spot = 1 + Math.floor(quote.minor / 4);
      // A second requote of the same amounts in one second would be held.
      recent[place] = recent.at(-1) as (typeof recent)[number];
      recent.pop();
      pending += `{"kind":"requote_accepted","requote_id":"${id('rq')}",${quote.text},${amounts(spot, quote.rate, quote.digits)}`;
    } else if (quote !== undefined && chance < 0.08) {
      pending += `{"kind":"reversal","reversal_id":"${id('rv')}",${quote.text},${amounts(-quote.minor, quote.rate, quote.digits)}`;
      recent[place] = recent.at(-1) as (typeof recent)[number];
      recent.pop();
    } else {
      // The share of the n-th seller falls with about the square of its place: few sell most.
      const seller = steady[Math.floor(random() ** 2 * steady.length)] as Seller;
      const currency = seller.currencies[Math.floor(random() * seller.currencies.length)] as string;
      const policy = POLICIES[Math.floor(random() * seller.policies)] as (typeof POLICIES)[number];
      const digits = MINOR_DIGITS[currency] ?? 2;
      const minor = 150 + Math.floor(random() * 20_000);
      const rate = Number(policy.partner_cut_rate.slice(2));
      const text =
        `"partner_id":"${seller.id}","quote_id":"${id('q')}","enrollment_id":"${id('en')}",` +
        `"policy_id":"${policy.policy_id}","currency":"${currency}"`;
      pending += `{"kind":"quote_accepted",${text},${amounts(minor, rate, digits)}`;
      const remembered = { text, minor, rate, digits };
      if (recent.length < REMEMBERED) recent.push(remembered);
      else recent[place] = remembered;
    }
    if (pending.length > BYTES_AT_ONCE) {
      if (!output.write(pending)) await once(output, 'drain');
      pending = '';
    }
  }
  output.end(pending);
  await ended;
}
