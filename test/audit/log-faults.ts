/** Faults of packs that both verifiers must refuse, each with the words of the refusal. */
import { expect } from 'vitest';
import { LINES, LOG_KEY, noteOf, ORIGIN, Signer, WITNESS } from './log-pack.ts';

/** A line of the honest log in which a part is replaced, sealed again with the key of the log. */
export const line = (number: number, from: string, to: string) => (lines: readonly string[]) =>
  lines.map((text, index) => (index === number - 1 ? text.replace(from, to) : text));

/** name of the fault, the number of the line, what is replaced, and what the verifiers say. */
export const VALUES: readonly [number, from: string, to: string, says: string][] = [
  ...[
    ['-0', 'malformed amount'],
    ['61.520', 'malformed amount'],
    ['+61.52', 'malformed amount'],
    ['061.52', 'malformed amount'],
    ['61,52', 'malformed amount'],
    ['6.152e1', 'malformed amount'],
    ['61.', 'malformed amount'],
    ['.52', 'malformed amount'],
    ['', 'malformed amount'],
    [' 61.52', 'malformed amount'],
    ['NaN', 'malformed amount'],
    ['0x3d', 'malformed amount'],
    ['٦١', 'malformed amount'],
    ['６１', 'malformed amount'],
    ['1000000000000000', 'malformed amount'],
    ['61.523', 'malformed amount'],
    ['\\N', 'NULL'],
  ].map(([to = '', says = '']): [number, string, string, string] => [3, '61.52', to, `spot_price: ${says}`]),
  [5, '\t7\t', '\t7.5\t', 'spot_price: malformed amount'],
  [7, '0.125', '0.1251', 'amount: malformed amount'],
  [7, '0.41', '0.411', 'settled_amount: malformed amount'],
  [7, 'USD', '\\N', 'settled_amount: malformed amount'],
  [3, 'EUR', 'EUX', 'spot_price: malformed amount'],
  [3, 'EUR', 'eur', 'spot_price: malformed amount'],
  [14, '\t2\t', '\t02\t', 'event_id: malformed int'],
  [14, '\t2\t', '\t+2\t', 'event_id: malformed int'],
  [14, '\t2\t', '\t2.0\t', 'event_id: malformed int'],
  [14, '\t2\t', '\t-0\t', 'event_id: malformed int'],
  [14, '\t2\t', '\t２\t', 'event_id: malformed int'],
  [14, '\t2\t', '\t1234567890123456789\t', 'event_id: malformed int'],
  [6, '2026-07-31', '2026-02-30', 'received_on: malformed day'],
  [6, '2026-07-31', '2026-7-31', 'received_on: malformed day'],
  [6, '2026-07-31', '0000-01-01', 'received_on: malformed day'],
  [7, '2024-02-29', '2023-02-29', 'received_on: malformed day'],
  [6, '2026-07-31', '2026-07-31 ', 'received_on: malformed day'],
  [6, '2026-07-31', '２026-07-31', 'received_on: malformed day'],
  [3, '.123456Z', '.123Z', 'accepted_at: malformed time'],
  [3, 'T12', 'T24', 'accepted_at: malformed time'],
  [3, ':00.1', ':60.1', 'accepted_at: malformed time'],
  [3, 'T12', ' 12', 'accepted_at: malformed time'],
  [3, '456Z', '456+00:00', 'accepted_at: malformed time'],
  [3, '07-15', '02-30', 'accepted_at: malformed time'],
  [8, 'false', 'FALSE', 'reduced: malformed flag'],
  [8, 'false', '0', 'reduced: malformed flag'],
  [6, '00ff', '00f', 'payload: malformed hex'],
  [6, '00ff', '00FF', 'payload: malformed hex'],
  [8, '\t19\t', '\t19.0000\t', 'rate: malformed rate'],
  [8, '\t19\t', '\t19.00001\t', 'rate: malformed rate'],
  [6, '0.975', '1e3', 'confidence: malformed number'],
  [6, '0.975', '-0', 'confidence: malformed number'],
  [1, 'rows:3', 'rows:03', 'details: malformed map'],
  [1, 'rows:3', 'rows:1e3', 'details: malformed map'],
  [1, 'rows:3', 'rows:True', 'details: malformed map'],
  [1, 'rows:3', 'rows', 'details: malformed map'],
  [1, 'rows:3', 'file=twice', 'details: malformed map'],
  [1, 'rows:3', 'a=out of order', 'details: malformed map'],
  [1, '%2E', '%2e', 'details: malformed map'],
  [1, '%26', '%27', 'details: malformed map'],
  [1, 'a\\tb', 'a\\bb', 'malformed escape'],
  [1, 'd\\re', 'd\\', 'malformed escape'],
  [1, 'a\\tb', 'a\x00b', 'a control character'],
  [1, 'a\\tb', 'a\x0cb', 'a control character'],
  [3, '\t1', '\t1\r', 'a control character'],
  [1, '\\re', '\\re\r', 'a control character'],
  [1, 'audit_events', '\ufeffaudit_events', 'not a kind of fact'],
  [3, 'ledger_rows', 'Ledger_rows', 'not a kind of fact'],
  [3, 'ledger_rows', 'ledger_rows.2', 'not a kind of fact'],
  [3, 'invoicing', 'invoicing\tmore', '12 columns instead of 11'],
  [3, '\tinvoicing', '', '10 columns instead of 11'],
  [4, '\t8\t', '\t6\t', 'its number does not follow that of the line before'],
  [4, '\t8\t', '\t08\t', 'its number does not follow that of the line before'],
  [4, '\t8\t', '\t1000000000000000\t', 'its number does not follow that of the line before'],
  [1, '\t2\t', '\t0\t', 'its number does not follow that of the line before'],
  [1, 'a\\tb', 'x'.repeat(65_500), 'longer than 65535 bytes'],
  [8, '61.02', '99999999999', 'amount times rate may pass 2^62'],
];

const text = (change: (text: string) => string) => (content: Buffer | undefined) =>
  Buffer.from(change((content ?? Buffer.alloc(0)).toString()));
/** Changes a file, before or after the manifest is written. */
export const edit = (name: string, change: (content: Buffer | undefined) => Buffer) => (files: Map<string, Buffer>) =>
  files.set(name, change(files.get(name)));
export const replace = (name: string, from: string | RegExp, to: string) =>
  edit(
    name,
    text((content) => {
      const changed = content.replace(from, to);
      expect(changed).not.toBe(content);
      return changed;
    }),
  );

export interface Fault {
  readonly name: string;
  readonly change?: (files: Map<string, Buffer>) => void;
  readonly tamper?: (files: Map<string, Buffer>) => void;
  readonly says: string;
}
const LAST = 'checkpoints/22';
const other = new Signer(ORIGIN, 'another key');
const OTHER_LINES = line(16, '2.5', '2.6')(LINES);

export const FILES: readonly Fault[] = [
  // The log and its checkpoints.
  {
    name: 'a changed line',
    change: replace('log.tsv', '61.52', '61.53'),
    says: 'checkpoints/13: not the root of these leaves',
  },
  {
    name: 'a line left out',
    change: replace('log.tsv', /ledger_rows\t6.*\n/, ''),
    says: 'log.tsv: 21 lines instead of 22',
  },
  {
    name: 'lines exchanged',
    change: replace('log.tsv', /(ledger_rows\t6.*\n)(.*\n)/, '$2$1'),
    says: 'log.tsv line 4: its number',
  },
  { name: 'an empty line', change: replace('log.tsv', '\n', '\n\n'), says: 'log.tsv line 2: not a kind of fact' },
  { name: 'no line end', change: replace('log.tsv', /\n$/, ''), says: 'log.tsv line 22: no line end' },
  { name: 'CR LF', change: replace('log.tsv', /\n/g, '\r\n'), says: 'log.tsv line 1: a control character' },
  {
    name: 'bytes that are not UTF-8',
    change: edit('log.tsv', (content) =>
      Buffer.from((content ?? Buffer.alloc(0)).toString('latin1').replace('q-2', 'q\xff'), 'latin1'),
    ),
    says: 'log.tsv line 4: not UTF-8',
  },
  {
    name: 'a note of another log',
    change: edit(LAST, () => Buffer.from(noteOf(LINES, 22, 'other.example/1'))),
    says: `${LAST}: of another log, other.example/1`,
  },
  {
    name: 'a note of other leaves',
    change: edit(LAST, () => Buffer.from(noteOf(OTHER_LINES, 22))),
    says: `${LAST}: not the root of these leaves`,
  },
  {
    name: 'a note of another size',
    change: edit(LAST, () => Buffer.from(noteOf(LINES, 21))),
    says: `${LAST}: of another size`,
  },
  {
    name: 'a note by another key',
    change: edit(LAST, () => Buffer.from(noteOf(LINES, 22, ORIGIN, [other]))),
    says: `${LAST}: signed by other keys only`,
  },
  {
    name: 'the signature of another note',
    change: (files) =>
      files.set(
        LAST,
        Buffer.from(
          noteOf(LINES, 22)
            .replace(/— .*\n/, noteOf(LINES, 20).split('\n')[4] ?? '')
            .concat('\n'),
        ),
      ),
    says: `${LAST}: not signed by ${LOG_KEY.vkey}`,
  },
  { name: 'a signature cut short', change: replace(LAST, /.{4}\n$/, '\n'), says: `${LAST}: not signed by` },
  { name: 'a note with CR LF', change: replace(LAST, /\n/g, '\r\n'), says: `${LAST}: not a checkpoint` },
  {
    name: 'a note with an extension line',
    change: replace(LAST, '\n\n', '\nmore\n\n'),
    says: `${LAST}: not a checkpoint`,
  },
  { name: 'a note with 022 leaves', change: replace(LAST, '\n22\n', '\n022\n'), says: `${LAST}: not a checkpoint` },
  {
    name: 'a note with a hyphen before the signature',
    change: replace(LAST, '— ', '- '),
    says: `${LAST}: not a checkpoint`,
  },
  { name: 'a note without a last line end', change: replace(LAST, /\n$/, ''), says: `${LAST}: not a checkpoint` },
  {
    name: 'a root in Base64 with other last bits',
    change: replace(LAST, /.=\n\n/, 'B=\n\n'),
    says: `${LAST}: malformed Base64`,
  },
  {
    name: 'a root of 31 bytes',
    change: replace(LAST, /\n.{43}=\n/, `\n${Buffer.alloc(31).toString('base64')}\n`),
    says: `${LAST}: malformed Base64`,
  },
  {
    name: 'a vkey with another id',
    change: replace('vkey', /\+[0-9a-f]{8}\+/, '+00000000+'),
    says: 'vkey: not a verifier key of type 1',
  },
  { name: 'a vkey without a line end', change: replace('vkey', '\n', ''), says: 'vkey: malformed Base64' },
  {
    name: 'a vkey of a witness',
    change: edit('vkey', () => Buffer.from(`${WITNESS.vkey}\n`)),
    says: 'vkey: not a verifier key of type 1',
  },
  {
    name: 'a time stamp of something else',
    change: edit(`${LAST}.tsr`, () => Buffer.from('3000', 'hex')),
    says: `${LAST}.tsr: not a time stamp of this checkpoint`,
  },
  {
    name: 'an edge of a pack that begins the log',
    change: edit('edge', () => Buffer.from('0\n')),
    says: 'edge: another edge',
  },
  // The folder and its manifest.
  {
    name: 'a file that is not in the manifest',
    tamper: edit('voids.csv', () => Buffer.from('number\n')),
    says: 'voids.csv is not in the manifest',
  },
  {
    name: 'a file with a name of another kind',
    tamper: edit('.DS_Store', () => Buffer.of(0)),
    says: '.DS_Store is not a file of a pack',
  },
  {
    name: 'a file in another folder',
    tamper: edit('more/ledger.csv', () => Buffer.of(0)),
    says: 'more is not a file of a pack',
  },
  { name: 'a missing file', tamper: (files) => files.delete('README.txt'), says: 'README.txt is missing' },
  { name: 'a missing log', change: (files) => files.delete('log.tsv'), says: 'log.tsv is missing' },
  { name: 'a missing last checkpoint', change: (files) => files.delete(LAST), says: `${LAST} is missing` },
  { name: 'no manifest', tamper: (files) => files.delete('manifest.json'), says: 'manifest.json' },
  {
    name: 'a file changed after the manifest',
    tamper: replace('README.txt', 'A', 'a'),
    says: 'README.txt: not the file of the manifest',
  },
  { name: 'a longer file', tamper: replace('README.txt', /$/, ' '), says: 'README.txt: not the file of the manifest' },
  ...(
    [
      ['a key twice', '"version": 2,', '"version": 2,\n  "version": 2,', 4],
      ['version 2.0', '"version": 2', '"version": 2.0', 3],
      ['version 20e-1', '"version": 2', '"version": 20e-1', 3],
      ['version 1', '"version": 2', '"version": 1', 3],
      ['an escape', '"ledger"', '"\\u006cedger"', 4],
      ['other spaces', '"kind": ', '"kind":', 4],
      ['a tab', '  "kind"', '\t"kind"', 4],
      ['CR LF', '"version": 2,', '"version": 2,\r', 3],
      ['a byte order mark', '{', '\ufeff{', 1],
      ['other order', '"version": 2,\n  "kind": "ledger",', '"kind": "ledger",\n  "version": 2,', 3],
      ['one more key', '"program"', '"more": 1,\n  "program"', 12],
      ['month 13', '"from": "2026-07"', '"from": "2026-13"', 6],
      ['a month without zero', '"from": "2026-07"', '"from": "2026-7"', 6],
      ['day 30 of February', '2026-10-01T', '2026-02-30T', 11],
      ['hour 24', 'T08:', 'T24:', 11],
      ['first as -0', '"first": 0', '"first": -0', 9],
      ['first as text', '"first": 0', '"first": "0"', 9],
      ['first as null', '"first": 0', '"first": null', 9],
      ['size with a fraction', '"size": 22', '"size": 22.0', 10],
      ['size of 20 digits', '"size": 22', '"size": 22222222222222222222', 10],
      ['size in Arabic digits', '"size": 22', '"size": ٢٢', 10],
      ['bytes as text', '"bytes": 8', '"bytes": "8"', 14],
      ['a hash in capitals', /"sha256": "[0-9a-f]+"/, `"sha256": "${'A'.repeat(64)}"`, 14],
      ['a path outside', '"README.txt"', '"../README.txt"', 14],
      ['itself', '"README.txt"', '"manifest.json"', 14],
      ['a name twice', '"vkey"', '"README.txt"', 19],
      ['a total twice', '"spotPrice"', '"spotPrice": "1.00",\n          "spotPrice"', 50],
      ['a total as a number', /"spotPrice": "(.*)"/, '"spotPrice": $1', 50],
      ['rows as null', '"rows": 22', '"rows": null', 29],
      ['two line ends', /\n$/, '\n\n', 0],
      ['no line end', /\n$/, '', 0],
      ['a comment', '"files"', '// files\n  "files"', 13],
      ['a list of 30,000 lists', '"kind": "ledger"', `"kind": ${'['.repeat(30_000)}`, 4],
    ] as const
  ).map(([name, from, to, number]) => {
    const says = number === 0 ? 'manifest.json line ' : `manifest.json line ${number}: `;
    return { name: `a manifest with ${name}`, tamper: replace('manifest.json', from, to), says };
  }),
  {
    name: 'a manifest that ends before it begins',
    tamper: replace('manifest.json', '"to": "2026-09"', '"to": "2026-06"'),
    says: 'manifest.json line 11: ends before it begins',
  },
  // Data files.
  ...(
    [
      ['ledger.csv', 'another amount', '61.52', '61.53', 2],
      ['ledger.csv', 'fewer digits', '-0.50', '-0.5', 3],
      ['ledger.csv', 'a quoted cell', 'q-1', '"q-1"', 2],
      ['ledger.csv', 'another column', 'spotPrice', 'spot_price', 1],
      ['ledger.csv', 'a row less', /.*q-2.*\n/, '', 3],
      ['ledger.csv', 'a row more', /$/, 'quote_accepted\n', 9],
      ['ledger.csv', 'CR LF', /\n/g, '\r\n', 1],
      ['ledger.csv', 'no last line end', /\n$/, '', 8],
      ['ledger.csv', 'a byte order mark', 'kind', '\ufeffkind', 1],
      ['ledger.csv', 'another flag', 'false', 'False', 2],
      ['payments.jsonl', 'other spaces', ' : ', ':', 1],
      ['payments.jsonl', 'an amount as a number', '"12.30"', '12.30', 1],
      ['payments.jsonl', 'an escape', 'ü', '\\u00fc', 2],
      ['payments.jsonl', 'a key left out', '"settled_currency" : null, ', '', 1],
      ['payments.jsonl', 'a key twice', '{"payment_id" : 1', '{"payment_id" : 1, "payment_id" : 1', 1],
      ['payments.jsonl', 'a list of 30,000 lists', /^/, '['.repeat(30_000), 1],
      ['taxes.csv', 'zeros after a rate', ',19,', ',19.00,', 2],
    ] as const
  ).map(([file, name, from, to, number]) => {
    return { name: `${file} with ${name}`, change: replace(file, from, to), says: `${file}: line ${number}: ` };
  }),
  {
    name: 'more rows in the manifest',
    tamper: replace('manifest.json', '"rows": 2\n', '"rows": 3\n'),
    says: 'taxes.csv: 2 rows, not 3 as in the manifest',
  },
  {
    name: 'other totals in the manifest',
    tamper: replace('manifest.json', '67.53"', '67.530"'),
    says: 'ledger.csv: EUR spotPrice: not as in the manifest',
  },
];
