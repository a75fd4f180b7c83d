/** Packs whose closed books do not follow from the sealed facts, with everything else made to fit. */
import { Decimal } from 'decimal.js';
import type { Forger } from './forger.ts';
import type { Forgery } from './forgeries.ts';

type Entry = Record<string, string>;
type Entries = Record<string, Entry[]>;

const MONTHS = ['2026-07', '2026-08'];
const ENTRY = 'fact fact_id entry_on dated_on debit credit currency amount document reference'.split(' ');
const CONTROLS = /^(assets:receivable:[a-z]+|assets:bank|expenses:[a-z-]+|income:[a-z]+|liabilities:[a-z-]+)/;

/** What entries add to each account, by `account currency`. */
function movesOf(entries: readonly Entry[]): Map<string, Decimal> {
  const moves = new Map<string, Decimal>();
  for (const { debit, credit, currency, amount = '0' } of entries)
    for (const [account, sum] of [
      [debit, new Decimal(amount)] as const,
      [credit, new Decimal(amount).negated()] as const,
    ])
      moves.set(`${account}\t${currency}`, (moves.get(`${account}\t${currency}`) ?? new Decimal(0)).plus(sum));
  return moves;
}

const inBytes = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0);

/** Writes a month's balances and their sums in its record. */
function writeBalances(pack: Forger, month: string, balances: Map<string, Decimal>): void {
  const all = [...balances].filter(([, sum]) => !sum.isZero()).sort(([one], [other]) => inBytes(one, other));
  const controls = new Map<string, Decimal>();
  const lines = all.map(([key, sum]) => {
    const control = CONTROLS.exec(key)?.[0] ?? '';
    const of = `${control} ${key.split('\t')[1]}`;
    controls.set(of, (controls.get(of) ?? new Decimal(0)).plus(sum));
    return `${control}\t${key}\t${sum.toFixed()}\n`;
  });
  pack.write(`books/${month}/accounts.tsv`, `control\taccount\tcurrency\tamount\n${lines.join('')}`);
  const stated = [...controls].filter(([, sum]) => !sum.isZero()).sort(([one], [other]) => inBytes(one, other));
  const record = pack.text(`books/${month}/record.txt`).replace(/^balance .*\n/gm, '');
  pack.write(
    `books/${month}/record.txt`,
    record + stated.map(([of, sum]) => `balance ${of} ${sum.toFixed()}\n`).join(''),
  );
}

/** Other entries, with all balances, records, seals and the manifest made again. */
const rebooked = (work: (entries: Entries) => void) => (pack: Forger) => {
  const entries: Entries = {};
  for (const month of MONTHS) {
    pack.rows(
      `books/${month}/entries.tsv`,
      (rows) => {
        entries[month] = rows;
      },
      true,
    );
  }
  const before = structuredClone(entries);
  work(entries);
  const added = new Map<string, Decimal>();
  for (const month of MONTHS) {
    const lines = (entries[month] ?? []).map((row) => ENTRY.map((column) => row[column]).join('\t'));
    pack.write(`books/${month}/entries.tsv`, `${[ENTRY.join('\t'), ...lines].join('\n')}\n`);
    const balances = new Map<string, Decimal>();
    pack
      .text(`books/${month}/accounts.tsv`)
      .trimEnd()
      .split('\n')
      .slice(1)
      .forEach((line) => {
        const [, account, currency, amount = '0'] = line.split('\t');
        balances.set(`${account}\t${currency}`, new Decimal(amount));
      });
    for (const [key, sum] of movesOf(entries[month] ?? []))
      added.set(key, (added.get(key) ?? new Decimal(0)).plus(sum));
    for (const [key, sum] of movesOf(before[month] ?? []))
      added.set(key, (added.get(key) ?? new Decimal(0)).minus(sum));
    for (const [key, sum] of added) balances.set(key, (balances.get(key) ?? new Decimal(0)).plus(sum));
    writeBalances(pack, month, balances);
  }
  pack.reseal();
};

const of = (entries: Entries, month: string, fact: string, id: string): Entry => {
  const found = entries[month]?.find((entry) => entry['fact'] === fact && entry['fact_id'] === id);
  if (found === undefined) throw new Error(`${month} has no ${fact} ${id}`);
  return found;
};

const books = (name: string, work: (entries: Entries) => void): Forgery => ({
  ...{ name, kind: 'payments-csv', check: 'books', forge: rebooked(work) },
});

const ENTRIES: readonly Forgery[] = [
  books('bad debts that the view relabelled as partner cut', (entries) => {
    for (const row of entries['2026-08'] ?? [])
      for (const side of ['debit', 'credit'])
        if (row[side] === 'expenses:bad-debts') row[side] = 'expenses:partner-cut:p-3';
  }),
  books('an entry that is left out with its balance', (entries) => {
    const dropped = of(entries, '2026-08', 'written_off', '2');
    entries['2026-08'] = (entries['2026-08'] ?? []).filter((row) => row !== dropped);
  }),
  books('an entry in the month before that of its fact', (entries) => {
    const moved = of(entries, '2026-08', 'document_issued', '5');
    entries['2026-08'] = (entries['2026-08'] ?? []).filter((row) => row !== moved);
    entries['2026-07'] = [{ ...moved, entry_on: '2026-07-31', dated_on: '2026-07-31' }];
  }),
  books('an entry twice', (entries) => entries['2026-08']?.push(of(entries, '2026-08', 'written_off', '2'))),
  books('an entry of no fact', (entries) =>
    entries['2026-08']?.push({ ...of(entries, '2026-08', 'written_off', '2'), fact_id: '3' }),
  ),
  books('an entry of a fact that does not exist', (entries) =>
    entries['2026-08']?.push({ ...of(entries, '2026-08', 'written_off', '2'), fact: 'donated' }),
  ),
  books('an entry of another amount', (entries) => {
    of(entries, '2026-08', 'document_issued', '4')['amount'] = '28.5';
  }),
  books('an entry on the account of another partner', (entries) => {
    of(entries, '2026-08', 'credit_applied', '1')['credit'] = 'assets:receivable:billed:p-2';
  }),
  books('an entry that names another document', (entries) => {
    of(entries, '2026-08', 'written_off', '2')['document'] = 'INV-2026-000004';
  }),
  books('an entry with another true date', (entries) => {
    of(entries, '2026-08', 'written_off', '2')['dated_on'] = '2026-08-02';
  }),
];

export const FORGED_JOURNALS: readonly Forgery[] = ENTRIES;
