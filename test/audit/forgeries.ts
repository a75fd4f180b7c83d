/**
 * Forged packs: how each is made from an honest one, and the check by which both verifiers refuse it. Those that seal
 * everything again are what an owner of the database can do who knows that nobody holds a seal.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, renameSync, symlinkSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { FORGED_JOURNALS } from './forged-journals.ts';
import type { Forger, Manifest } from './forger.ts';

export const KINDS = ['ledger-csv', 'ledger-jsonl', 'invoices-csv', 'invoices-jsonl'] as const;
export const MORE_KINDS = [
  ...(['payments-csv', 'events-csv', 'events-jsonl', 'journal-csv', 'partners-csv', 'partners-jsonl'] as const),
  ...(['journal-hledger', 'journal-beancount'] as const),
] as const;
export type Kind = (typeof KINDS)[number] | (typeof MORE_KINDS)[number];

export interface Forgery {
  readonly name: string;
  readonly kind: Kind;
  /** The check that must fail. */
  readonly check: string;
  readonly forge: (pack: Forger) => void;
  /** Options; `previous` is an honest pack of the same kind, `seals` those of the honest pack. */
  readonly args?: (honest: { previous: string; manifest: Manifest }) => string[];
}

export const forgery = (
  check: string,
  kind: Kind,
  name: string,
  forge: (pack: Forger) => void,
  args?: Forgery['args'],
): Forgery => ({
  ...{ name, kind, check, forge },
  ...(args && { args }),
});
/** A change of files, with a manifest that fits. */
export const fitted = (forge: (pack: Forger) => void) => (pack: Forger) => {
  forge(pack);
  pack.fit();
};
/** A change of tables or records, with seals and a manifest that fit. */
export const resealed = (forge: (pack: Forger) => void) => (pack: Forger) => {
  forge(pack);
  pack.reseal();
};
const inManifest = (work: (manifest: Manifest) => void) => (pack: Forger) => pack.change(work);

const JULY = 'sealed/2026-07/record.txt';
const AUGUST = 'sealed/2026-08/record.txt';
const ROWS = 'sealed/2026-08/ledger_rows.tsv';
const DOCUMENTS = 'sealed/2026-08/documents.tsv';
const first = <Item>(list: readonly Item[]): Item => list[0] as Item;
const swapped = (text: string, one: string, other: string) =>
  text.replace(one, '\0').replace(other, one).replace('\0', other);

const LAYOUT: readonly Forgery[] = [
  forgery('layout', 'ledger-csv', 'a link more', (pack) => symlinkSync('/etc/hostname', pack.path('sealed/more'))),
  forgery('layout', 'ledger-csv', 'the ledger as a link', (pack) => {
    pack.remove('ledger.csv');
    symlinkSync('/etc/hostname', pack.path('ledger.csv'));
  }),
  forgery('layout', 'ledger-csv', 'the folder of a month as a link', (pack) => {
    renameSync(pack.path('sealed/2026-07'), `${pack.folder}-elsewhere`);
    symlinkSync(`${pack.folder}-elsewhere`, pack.path('sealed/2026-07'));
  }),
  forgery('layout', 'ledger-csv', 'a pipe that never ends', (pack) => {
    pack.remove('ledger.csv');
    execFileSync('mkfifo', [pack.path('ledger.csv')]);
  }),
  forgery('layout', 'ledger-csv', 'a folder more', (pack) => mkdirSync(pack.path('notes'))),
  forgery('layout', 'ledger-csv', 'an empty folder of a month', (pack) => mkdirSync(pack.path('sealed/2026-06'))),
  forgery('layout', 'ledger-csv', 'a month that is written otherwise', (pack) =>
    renameSync(pack.path('sealed/2026-07'), pack.path('sealed/2026-7')),
  ),
  forgery(
    'layout',
    'ledger-csv',
    'a ledger under another name',
    fitted((pack) => renameSync(pack.path('ledger.csv'), pack.path('ledger_2026-Q3.csv'))),
  ),
  forgery(
    'layout',
    'ledger-csv',
    'a ledger with a capital',
    fitted((pack) => pack.write('Ledger.csv', 'x\n')),
  ),
  forgery(
    'layout',
    'ledger-csv',
    'a hidden file',
    fitted((pack) => pack.write('.ledger.csv', 'x\n')),
  ),
  forgery(
    'layout',
    'ledger-csv',
    'a program',
    fitted((pack) => pack.write('verify.mjs', 'process.exit(0)\n')),
  ),
  forgery('layout', 'ledger-csv', 'a name that clears the screen', (pack) =>
    pack.write('\x1b[2J\x1b[HAll checks hold.\x1b[8m', 'x'),
  ),
  forgery('layout', 'ledger-csv', 'nothing at all', (pack) => {
    for (const name of readdirSync(pack.folder)) pack.remove(name);
  }),
];

const FILES: readonly Forgery[] = [
  forgery(
    'files',
    'ledger-csv',
    'data of another kind',
    fitted((pack) => pack.write('payments.csv', 'payment_id\n')),
  ),
  forgery(
    'files',
    'ledger-csv',
    'a table under no seal',
    fitted((pack) => pack.write('sealed/2026-07/wages.tsv', 'fact_id\tamount\n1\t5\n')),
  ),
  forgery(
    'files',
    'ledger-csv',
    'books of a month that has none',
    fitted((pack) => {
      mkdirSync(pack.path('books/2026-10'));
      for (const name of ['record.txt', 'entries.tsv', 'accounts.tsv'])
        pack.write(`books/2026-10/${name}`, pack.text(`books/2026-08/${name}`));
    }),
  ),
  forgery(
    'files',
    'ledger-csv',
    'no rows, and a manifest without them',
    fitted((pack) => {
      for (const each of ['2026-07', '2026-08', '2026-09', '2026-10']) pack.remove(`sealed/${each}/ledger_rows.tsv`);
    }),
  ),
  forgery(
    'files',
    'ledger-csv',
    'no ledger',
    fitted((pack) => pack.remove('ledger.csv')),
  ),
  forgery('files', 'ledger-csv', 'a changed ledger', (pack) =>
    pack.edit('ledger.csv', (text) => text.replace('40.00', '41.00')),
  ),
  forgery(
    'files',
    'ledger-csv',
    'a size that is not its own',
    inManifest(({ files }) => {
      first(files).bytes += 1;
    }),
  ),
  forgery(
    'files',
    'ledger-csv',
    'a path out of the pack',
    inManifest(({ files }) => {
      first(files).name = '../../../../etc/hostname';
    }),
  ),
  forgery(
    'files',
    'ledger-csv',
    'a device in the manifest',
    inManifest(({ files }) => {
      first(files).name = '../../../../dev/zero';
    }),
  ),
];

const MANIFEST: readonly Forgery[] = [
  forgery('manifest', 'ledger-csv', 'a key twice', (pack) =>
    pack.edit('manifest.json', (text) =>
      text.replace('  "kind": "ledger",\n', '  "kind": "events",\n  "kind": "ledger",\n'),
    ),
  ),
  forgery(
    'manifest',
    'ledger-csv',
    'a key more',
    inManifest((manifest) => {
      manifest['audited_by'] = 'everybody';
    }),
  ),
  forgery('manifest', 'ledger-csv', 'a prototype', (pack) =>
    pack.edit('manifest.json', (text) => text.replace('{\n', '{\n  "__proto__": 1,\n')),
  ),
  forgery('manifest', 'ledger-csv', 'keys in another order', (pack) => {
    const { version, ...rest } = pack.manifest;
    pack.manifest = { version, ...rest } as Manifest;
  }),
  forgery('manifest', 'ledger-csv', 'other white space', (pack) =>
    pack.write('manifest.json', JSON.stringify(pack.manifest)),
  ),
  forgery(
    'manifest',
    'ledger-csv',
    'another version',
    inManifest((manifest) => {
      manifest['version'] = 2;
    }),
  ),
  forgery('manifest', 'ledger-csv', 'a version with a fraction', (pack) =>
    pack.edit('manifest.json', (text) => text.replace('"version": 1,', '"version": 1.0,')),
  ),
  forgery(
    'manifest',
    'ledger-csv',
    'a kind that is no kind',
    inManifest((manifest) => {
      manifest['kind'] = 'constructor';
    }),
  ),
  forgery(
    'manifest',
    'ledger-csv',
    'a month that wipes the screen',
    inManifest(({ months }) => {
      first(months).month = '2026-10\x1b[2J\x1b[HAll checks hold.\x1b[8m';
    }),
  ),
  forgery(
    'manifest',
    'ledger-csv',
    'a range that leaves months out',
    inManifest((manifest) => {
      manifest.from = '2026-08';
    }),
  ),
  forgery(
    'manifest',
    'ledger-csv',
    'a range that ends before it begins',
    inManifest((manifest) => {
      manifest.to = '2026-06';
    }),
  ),
  forgery(
    'manifest',
    'ledger-csv',
    'a month left out in the middle',
    inManifest((manifest) => {
      manifest.months = manifest.months.filter(({ month }) => month !== '2026-08');
    }),
  ),
  forgery(
    'manifest',
    'ledger-csv',
    'a sealed month between others said to be open',
    inManifest(({ months }) => {
      Object.assign(months[1] as object, { seal: null, books_seal: null });
    }),
  ),
  forgery(
    'manifest',
    'ledger-csv',
    'open books between closed ones',
    inManifest(({ months }) => {
      first(months).books_seal = null;
    }),
  ),
  forgery(
    'manifest',
    'ledger-csv',
    'final, with open books',
    inManifest((manifest) => {
      manifest['preliminary'] = false;
    }),
  ),
  forgery(
    'manifest',
    'ledger-csv',
    'a file twice',
    inManifest(({ files }) => {
      files.push(first(files));
    }),
  ),
  forgery(
    'manifest',
    'ledger-csv',
    'half a row',
    inManifest(({ files }) => {
      first(files).rows = 0.5;
    }),
  ),
  forgery(
    'manifest',
    'ledger-csv',
    'a file without totals',
    inManifest(({ files }) => {
      delete files.find(({ totals }) => totals)?.totals;
    }),
  ),
];

const RECORDS: readonly Forgery[] = [
  forgery(
    'records',
    'ledger-csv',
    'another installation',
    inManifest((manifest) => {
      manifest['installation'] = '0123456789ab';
    }),
  ),
  forgery(
    'records',
    'ledger-csv',
    'a sandbox as production',
    inManifest((manifest) => {
      manifest['environment'] = 'production';
    }),
  ),
  forgery('records', 'ledger-csv', 'the first month left out', (pack) => {
    pack.remove('sealed/2026-07');
    pack.remove('books/2026-07');
    pack.change(({ months }) => months.shift());
    pack.fit();
  }),
  forgery(
    'records',
    'ledger-csv',
    'another seal',
    inManifest(({ months }) => {
      first(months).seal = '0'.repeat(64);
    }),
  ),
  forgery('records', 'events-csv', 'a line that says what its seal is', (pack) => {
    const seal = pack.manifest.months[1]?.seal;
    pack.edit(
      AUGUST,
      (text) => `${text.replace(/^rows 3$/m, 'rows 4').replace('closed_with 3', 'closed_with 4')}seal ${seal}\n`,
    );
    pack.fit();
  }),
  ...(
    [
      ['a line twice', (text) => text.replace(/^rows 3\n/m, 'rows 3\nrows 3\n')],
      ['lines in another order', (text) => swapped(text, 'total JPY 2000 600 1400', 'total USD -40 -12 -28')],
      ['a line that nobody knows', (text) => text.replace(/^rows 3\n/m, 'rows 3\naudited yes\n')],
      ['an inherited word', (text) => text.replace(/^rows 3\n/m, 'rows 3\ntoString 1\n')],
      ['lines that end otherwise', (text) => text.replaceAll('\n', '\r\n')],
      ['a last line that does not end', (text) => text.trimEnd()],
      ['an empty line', (text) => `${text}\n`],
      ['a number with a zero in front', (text) => text.replace(/^rows 3$/m, 'rows 03')],
      ['a space more', (text) => text.replace(/^rows 3$/m, 'rows  3')],
      ['another number of rows at the close', (text) => text.replace('closed_with 3', 'closed_with 2')],
      ['a currency twice', (text) => text.replace(/^(total USD .*\n)/m, '$1$1')],
      ['no facts at all', (text) => text.replace(/^facts_of .*\n/gm, '')],
      ['a range of facts that is empty', (text) => text.replace(/^facts .*$/m, 'facts 90 to 11')],
      ['a form that does not exist', (text) => text.replace('reckoner seal 1', 'reckoner seal 2')],
      ['columns of rows twice', (text) => text.replace('rows_columns entry_id', 'rows_columns entry_id entry_id')],
      ['a day that is none', (text) => text.replace(/^issued_on .*$/m, 'issued_on 2026-13-01')],
      ['a month before that is not the one before', (text) => text.replace(/^previous 2026-07/m, 'previous 2026-05')],
    ] as readonly [string, (text: string) => string][]
  ).map(([name, change]) =>
    forgery('records', 'events-csv', `${name} in a record`, (pack) => {
      pack.edit(AUGUST, change);
      const { createHash } = process.getBuiltinModule('node:crypto');
      pack.change(({ months }) => {
        (months[1] as { seal: string }).seal = createHash('sha256').update(pack.text(AUGUST)).digest('hex');
      });
      pack.fit();
    }),
  ),
  forgery(
    'records',
    'events-csv',
    'a balance of zero in the record of books',
    resealed((pack) =>
      pack.edit('books/2026-08/record.txt', (text) => text.replace(/^(balance income:sales USD) .*$/m, '$1 0')),
    ),
  ),
];

const TABLES: readonly Forgery[] = [
  forgery(
    'tables',
    'ledger-csv',
    'columns of the rows that changed their names',
    fitted((pack) => pack.edit(ROWS, (text) => swapped(text, 'accepted_at', 'recorded_at'))),
  ),
  forgery(
    'tables',
    'ledger-csv',
    'a field more',
    fitted((pack) => pack.edit(ROWS, (text) => text.replace(/\n$/, '\tmore\n'))),
  ),
  forgery(
    'tables',
    'ledger-csv',
    'an escape that does not exist',
    resealed((pack) => pack.edit(ROWS, (text) => text.replace('\\N', '\\x4e'))),
  ),
  forgery(
    'tables',
    'ledger-csv',
    'a carriage return in a row',
    resealed((pack) => pack.edit(ROWS, (text) => text.replace('p-1', 'p-1\r'))),
  ),
  forgery(
    'tables',
    'ledger-csv',
    'an amount with zeros at its end',
    resealed((pack) => pack.edit(ROWS, (text) => text.replace('\t-40\t', '\t-40.00\t'))),
  ),
  forgery(
    'tables',
    'ledger-csv',
    'a row that is not UTF-8',
    resealed((pack) =>
      pack.write(ROWS, Buffer.concat([Buffer.from(pack.text(ROWS).trimEnd()), Buffer.of(0xc3, 0x28, 10)])),
    ),
  ),
  forgery(
    'tables',
    'ledger-csv',
    'a fact number below zero',
    resealed((pack) =>
      pack.rows(DOCUMENTS, (rows) => {
        first(rows)['fact_id'] = '-5';
      }),
    ),
  ),
  forgery(
    'tables',
    'ledger-csv',
    'a table without its columns',
    fitted((pack) => pack.write(DOCUMENTS, '')),
  ),
  forgery(
    'tables',
    'ledger-csv',
    'a column of documents that is gone',
    resealed((pack) => pack.edit(DOCUMENTS, (text) => text.replace('\tnumber\t', '\tnummer\t'))),
  ),
  forgery(
    'tables',
    'ledger-csv',
    'a column twice',
    resealed((pack) => pack.edit(DOCUMENTS, (text) => text.replace('\tnumber\t', '\tseries\t'))),
  ),
];

const SEALS: readonly Forgery[] = [
  forgery(
    'seals',
    'ledger-csv',
    'a changed row',
    fitted((pack) => pack.edit(ROWS, (text) => text.replace('ticket-protection', 'ticket-protectiom'))),
  ),
  forgery(
    'seals',
    'ledger-csv',
    'a row, its line and its document that agree',
    fitted((pack) => {
      pack.edit(ROWS, (text) => text.replace('1000\t300\t700', '2000\t300\t1700'));
      for (const name of [DOCUMENTS, 'sealed/2026-08/document_lines.tsv'])
        pack.edit(name, (text) => text.replace('1000\t300\t700', '2000\t300\t1700'));
    }),
  ),
  forgery(
    'seals',
    'ledger-csv',
    'columns of documents that changed their names',
    fitted((pack) => pack.edit(DOCUMENTS, (text) => swapped(text, 'partner_name', 'contact_name'))),
  ),
  forgery(
    'seals',
    'ledger-csv',
    'a row that is left out',
    fitted((pack) => pack.rows(ROWS, (rows) => rows.slice(1))),
  ),
  forgery('seals', 'ledger-csv', 'a month with one new seal', (pack) => {
    pack.edit(AUGUST, (text) => text.replace('issued_on 2026-09-01', 'issued_on 2026-09-02'));
    const { createHash } = process.getBuiltinModule('node:crypto');
    pack.change(({ months }) => {
      (months[1] as { seal: string }).seal = createHash('sha256').update(pack.text(AUGUST)).digest('hex');
    });
    pack.fit();
  }),
  forgery(
    'seals',
    'ledger-csv',
    'facts between two months',
    resealed((pack) =>
      pack.edit(AUGUST, (text) => text.replace(/^facts (\d+) to/m, (_, from) => `facts ${Number(from) + 1} to`)),
    ),
  ),
  forgery(
    'seals',
    'ledger-csv',
    'facts in two months',
    resealed((pack) =>
      pack.edit(AUGUST, (text) => text.replace(/^facts (\d+) to/m, (_, from) => `facts ${Number(from) - 1} to`)),
    ),
  ),
  forgery(
    'seals',
    'ledger-csv',
    'a fact far above its range',
    resealed((pack) =>
      pack.rows('sealed/2026-08/write_offs.tsv', (rows) => {
        (rows.at(-1) as Record<string, string>)['fact_id'] = '9000000000';
      }),
    ),
  ),
  forgery(
    'seals',
    'ledger-csv',
    'a fact of number zero',
    resealed((pack) =>
      pack.rows('sealed/2026-08/write_offs.tsv', (rows) => {
        first(rows)['fact_id'] = '0';
      }),
    ),
  ),
  forgery(
    'seals',
    'ledger-csv',
    'facts out of order',
    resealed((pack) => pack.rows('sealed/2026-08/write_offs.tsv', (rows) => rows.reverse())),
  ),
  forgery(
    'seals',
    'ledger-csv',
    'two facts with one number',
    resealed((pack) =>
      pack.rows('sealed/2026-08/voids.tsv', (rows) => {
        first(rows)['fact_id'] = pack.text('sealed/2026-08/holds.tsv').split('\n')[1]?.split('\t')[0] as string;
      }),
    ),
  ),
  forgery(
    'seals',
    'ledger-csv',
    'an action without its event',
    resealed((pack) =>
      pack.rows('sealed/2026-08/audit_events.tsv', (rows) =>
        rows.filter(({ action }) => action !== 'invoice.write_off'),
      ),
    ),
  ),
];

const EVIDENCE: readonly Forgery[] = [
  forgery(
    'rows',
    'ledger-csv',
    'a row twice',
    resealed((pack) => pack.rows(ROWS, (rows) => [first(rows), ...rows])),
  ),
  forgery(
    'rows',
    'ledger-csv',
    'rows out of order',
    resealed((pack) => pack.rows(ROWS, (rows) => rows.reverse())),
  ),
  forgery(
    'rows',
    'ledger-csv',
    'a row that does not add up',
    resealed((pack) => pack.edit(ROWS, (text) => text.replace('1000\t300\t700', '1000\t300\t600'))),
  ),
  forgery(
    'rows',
    'ledger-csv',
    'a row of a later month',
    resealed((pack) => pack.edit(ROWS, (text) => text.replace('2026-08', '2099-12'))),
  ),
  forgery(
    'rows',
    'ledger-csv',
    'totals that are not those of the rows',
    resealed((pack) => pack.edit(AUGUST, (text) => text.replace('total JPY 2000 600 1400', 'total JPY 3000 600 2400'))),
  ),
  forgery(
    'documents',
    'ledger-csv',
    'a second live document for the same rows',
    resealed((pack) => {
      pack.rows('sealed/2026-08/voids.tsv', (rows) => rows.slice(1));
      pack.rows(DOCUMENTS, (rows) => {
        for (const row of rows) row['replaces'] = '\\N';
      });
    }),
  ),
  forgery(
    'documents',
    'events-csv',
    'a replaced document that is not void',
    resealed((pack) => pack.rows('sealed/2026-08/voids.tsv', (rows) => rows.slice(1))),
  ),
  forgery(
    'documents',
    'events-csv',
    'a void twice',
    resealed((pack) =>
      pack.rows('sealed/2026-08/voids.tsv', (rows) => {
        (rows[1] as Record<string, string>)['document_id'] = first(rows)['document_id'] as string;
      }),
    ),
  ),
  forgery(
    'documents',
    'events-csv',
    'a void of nothing',
    resealed((pack) =>
      pack.rows('sealed/2026-08/voids.tsv', (rows) => {
        first(rows)['document_id'] = '999';
      }),
    ),
  ),
  forgery(
    'documents',
    'events-csv',
    'a gap in the numbers',
    resealed((pack) =>
      pack.edit(DOCUMENTS, (text) => text.replace('INV-2026-000006\tINV-2026\t6', 'INV-2026-000016\tINV-2026\t16')),
    ),
  ),
  forgery(
    'documents',
    'events-csv',
    'a number twice',
    resealed((pack) =>
      pack.edit(DOCUMENTS, (text) => text.replace('INV-2026-000006\tINV-2026\t6', 'INV-2026-000005\tINV-2026\t5')),
    ),
  ),
  forgery(
    'documents',
    'events-csv',
    'a number that is not its own',
    resealed((pack) =>
      pack.edit(DOCUMENTS, (text) => text.replace('INV-2026-000006\tINV-2026\t6', 'INV-2026-000009\tINV-2026\t6')),
    ),
  ),
  forgery(
    'documents',
    'events-csv',
    'a document that is not the sum of its lines',
    resealed((pack) => pack.edit(DOCUMENTS, (text) => text.replace('\t2000\t600\t1400\t', '\t2500\t600\t1900\t'))),
  ),
  forgery(
    'documents',
    'events-csv',
    'a line of no document',
    resealed((pack) =>
      pack.rows('sealed/2026-08/document_lines.tsv', (rows) => {
        (rows.at(-1) as Record<string, string>)['document_id'] = '999';
      }),
    ),
  ),
  forgery(
    'documents',
    'ledger-csv',
    'rows on no document',
    resealed((pack) => {
      pack.rows(DOCUMENTS, (rows) => rows.slice(0, -1));
      pack.rows('sealed/2026-08/document_lines.tsv', (rows) => rows.slice(0, -2));
    }),
  ),
  forgery(
    'documents',
    'events-csv',
    'two PDFs of a document',
    resealed((pack) =>
      pack.rows('sealed/2026-08/document_pdfs.tsv', (rows) => {
        (rows[1] as Record<string, string>)['document_id'] = first(rows)['document_id'] as string;
      }),
    ),
  ),
];

const ENTRIES = 'books/2026-08/entries.tsv';
const ACCOUNTS = 'books/2026-08/accounts.tsv';
const BOOKS: readonly Forgery[] = [
  forgery(
    'books',
    'ledger-csv',
    'a changed entry of closed books',
    fitted((pack) => pack.edit(ENTRIES, (text) => text.replace('\t38.5\t', '\t39.5\t'))),
  ),
  forgery(
    'books',
    'ledger-csv',
    'an entry more',
    resealed((pack) => pack.lines(ENTRIES, (lines) => [...lines, lines.at(-1) as string])),
  ),
  forgery(
    'books',
    'ledger-csv',
    'a balance that does not follow',
    resealed((pack) => {
      pack.edit(ACCOUNTS, (text) => text.replace('USD\t37', 'USD\t47').replace('USD\t-28', 'USD\t-38'));
      pack.edit('books/2026-08/record.txt', (text) => text.replace('USD 37', 'USD 47').replace('USD -28', 'USD -38'));
    }),
  ),
  forgery(
    'books',
    'ledger-csv',
    'debits that are not the credits',
    resealed((pack) => {
      pack.edit(ACCOUNTS, (text) => text.replace('USD\t37', 'USD\t47'));
      pack.edit('books/2026-08/record.txt', (text) => text.replace('USD 37', 'USD 47'));
    }),
  ),
  forgery(
    'books',
    'ledger-csv',
    'an account that belongs elsewhere',
    resealed((pack) =>
      pack.edit(ACCOUNTS, (text) =>
        text.replace('income:adjustments\tincome:adjustments:p-1', 'income:sales\tincome:adjustments:p-1'),
      ),
    ),
  ),
  forgery(
    'books',
    'ledger-csv',
    'an entry of another month',
    resealed((pack) => pack.edit(ENTRIES, (text) => text.replace('2026-08-20\t2026-08-20', '2026-09-20\t2026-08-20'))),
  ),
  forgery(
    'books',
    'ledger-csv',
    'a fact dated in books that had closed',
    resealed((pack) =>
      pack.edit('sealed/2026-10/payments.tsv', (text) =>
        text.replace('2026-10-15\t2026-10-15', '2026-10-15\t2026-08-15'),
      ),
    ),
  ),
  forgery(
    'books',
    'ledger-csv',
    'books that are not those that the next seal has',
    resealed((pack) => {
      pack.edit(ACCOUNTS, (text) => text.replace('income:adjustments:p-1', 'income:adjustments:p-9'));
    }),
  ),
  forgery('books', 'ledger-csv', 'closed books said to be open', (pack) => {
    pack.remove('books/2026-08');
    pack.change(({ months }) => {
      (months[1] as { books_seal: null }).books_seal = null;
    });
    pack.fit();
  }),
];

/** The first line of a .csv that has this text, changed. */
export const inLine = (name: string, having: string | RegExp, from: string | RegExp, to: string) =>
  fitted((pack) =>
    pack.lines(name, (lines) => {
      const at = lines.findIndex((line) => (typeof having === 'string' ? line.includes(having) : having.test(line)));
      return lines.with(at, (lines[at] as string).replace(from, to));
    }),
  );
export const appended = (name: string) =>
  fitted((pack) => pack.lines(name, (lines) => [...lines, lines.at(-1) as string]));
export const shortened = (name: string) => fitted((pack) => pack.lines(name, (lines) => lines.slice(0, -1)));

const LEDGER_DATA: readonly Forgery[] = [
  forgery(
    'ledger.csv',
    'ledger-csv',
    'a column twice in the ledger',
    fitted((pack) =>
      pack.lines('ledger.csv', (lines) => lines.map((line, at) => `${at === 0 ? 'invoiceAmount' : '1.00'},${line}`)),
    ),
  ),
  forgery(
    'ledger.csv',
    'ledger-csv',
    'columns that changed their names',
    fitted((pack) => pack.edit('ledger.csv', (text) => swapped(text, 'quote_id', 'enrollment_id'))),
  ),
  forgery('ledger.csv', 'ledger-csv', 'a stray quote that hides a row', inLine('ledger.csv', 'q-1', 'q-1', 'q-1"')),
  forgery('ledger.csv', 'ledger-csv', 'a quote that stays open', inLine('ledger.csv', 'q-1', 'q-1', '"q-1')),
  forgery('ledger.csv', 'ledger-csv', 'a cell more', inLine('ledger.csv', 'q-1', /$/, ',more')),
  forgery('ledger.csv', 'ledger-csv', 'a row more', appended('ledger.csv')),
  forgery('ledger.csv', 'ledger-csv', 'a row less', shortened('ledger.csv')),
  forgery(
    'ledger.csv',
    'ledger-csv',
    'an amount',
    inLine('ledger.csv', '40.00,12.00,28.00', '40.00,12.00,28.00', '50.00,12.00,38.00'),
  ),
  forgery(
    'ledger.csv',
    'ledger-csv',
    'an amount in other words',
    inLine('ledger.csv', '40.00,12.00', '40.00,12.00', '040.00,12.00'),
  ),
  forgery('ledger.csv', 'ledger-csv', 'no document', inLine('ledger.csv', 'INV-2026-000004', 'INV-2026-000004', '')),
  forgery(
    'ledger.csv',
    'ledger-csv',
    'the void document',
    inLine('ledger.csv', 'INV-2026-000004', 'INV-2026-000004', 'INV-2026-000001'),
  ),
  forgery(
    'ledger.csv',
    'ledger-csv',
    'a document of others',
    inLine('ledger.csv', 'INV-2026-000004', 'INV-2026-000004', 'INV-2026-000006'),
  ),
  forgery('ledger.csv', 'ledger-csv', 'a carriage return in the ledger', inLine('ledger.csv', 'q-1', 'q-1', 'q-1\r')),
  forgery(
    'ledger.csv',
    'ledger-csv',
    'a mark in front of the ledger',
    fitted((pack) => pack.edit('ledger.csv', (text) => `\ufeff${text}`)),
  ),
  forgery('ledger.csv', 'ledger-csv', 'a formula', inLine('ledger.csv', 'q-1', 'q-1', '=q-1')),
  forgery(
    'ledger.csv',
    'ledger-csv',
    'totals of the manifest',
    inManifest(({ files }) => {
      const totals = files.find((file) => file.totals)?.totals?.['USD'] as Record<string, string>;
      totals['invoiceAmount'] = '1.00';
    }),
  ),
  forgery(
    'ledger.jsonl',
    'ledger-jsonl',
    'a key twice in a row',
    inLine('ledger.jsonl', 'q-1', '"spotPrice":', '"spotPrice":"1.00","spotPrice":'),
  ),
  forgery(
    'ledger.jsonl',
    'ledger-jsonl',
    'keys of a row in another order',
    fitted((pack) =>
      pack.edit('ledger.jsonl', (text) => text.replace(/("kind":"[^"]*"),("partner_id":"[^"]*")/, '$2,$1')),
    ),
  ),
  forgery('ledger.jsonl', 'ledger-jsonl', 'a partner in JSON', inLine('ledger.jsonl', 'q-1', 'p-1', 'p-2')),
];

const OTHER_DATA: readonly Forgery[] = [
  forgery(
    'invoices.csv',
    'invoices-csv',
    'the hash of a PDF',
    inLine('invoices.csv', /^INV-2026-000001/, /[0-9a-f]{64}/, '0'.repeat(64)),
  ),
  forgery(
    'invoices.csv',
    'invoices-csv',
    'half a hash of a PDF',
    inLine('invoices.csv', /^INV-2026-000001/, /([0-9a-f]{32})[0-9a-f]{32}/, '$1'),
  ),
  forgery(
    'invoices.csv',
    'invoices-csv',
    'a void document that is open',
    inLine('invoices.csv', /^INV-2026-000001/, ',void,', ',open,'),
  ),
  forgery(
    'invoices.csv',
    'invoices-csv',
    'a document that replaces another',
    inLine('invoices.csv', /^INV-2026-000004/, 'INV-2026-000001', 'INV-2026-000003'),
  ),
  forgery(
    'invoices.csv',
    'invoices-csv',
    'a document replaced by another',
    inLine('invoices.csv', /^INV-2026-000001/, ',INV-2026-000004,', ',INV-2026-000003,'),
  ),
  forgery(
    'invoices.csv',
    'invoices-csv',
    'a credit note of another invoice',
    inLine('invoices.csv', /^CN-2026-000001/, ',INV-2026-000004,', ',INV-2026-000003,'),
  ),
  forgery(
    'invoices.csv',
    'invoices-csv',
    'the day of a void',
    inLine('invoices.csv', /^INV-2026-000001/, ',2026-08-20,', ',2026-08-02,'),
  ),
  forgery(
    'invoices.csv',
    'invoices-csv',
    'the reason of a void',
    inLine('invoices.csv', /^INV-2026-000001/, 'a wrong address', 'their wish'),
  ),
  forgery('invoices.csv', 'invoices-csv', 'a status', inLine('invoices.csv', /^INV-2026-000006/, ',open,', ',paid,')),
  forgery(
    'invoices.csv',
    'invoices-csv',
    'a day to pay by',
    inLine('invoices.csv', /^INV-2026-000006/, '2026-10-01', '2027-10-01'),
  ),
  forgery('invoices.csv', 'invoices-csv', 'a document left out', shortened('invoices.csv')),
  forgery('invoices.csv', 'invoices-csv', 'a document twice', appended('invoices.csv')),
  forgery(
    'invoice-lines.csv',
    'invoices-csv',
    'the name of a policy',
    inLine('invoice-lines.csv', 'Parking Refund', 'Parking Refund', 'Parking Fee'),
  ),
  forgery('invoice-lines.csv', 'invoices-csv', 'a line left out', shortened('invoice-lines.csv')),
  forgery(
    'invoices.jsonl',
    'invoices-jsonl',
    'a line in JSON',
    inLine('invoices.jsonl', 'INV-2026-000001', '"count":1', '"count":2'),
  ),
  forgery(
    'invoices.jsonl',
    'invoices-jsonl',
    'the hash of a PDF in JSON',
    inLine('invoices.jsonl', '"number":"INV-2026-000001"', /[0-9a-f]{64}/, '0'.repeat(64)),
  ),
  forgery(
    'events.csv',
    'events-csv',
    'the details of an event',
    inLine('events.csv', 'a wrong address', 'a wrong address', 'their wish'),
  ),
  forgery('events.csv', 'events-csv', 'who did it', inLine('events.csv', 'invoice.void', 'Ada,ada', 'Ada,eve')),
  forgery(
    'events.csv',
    'events-csv',
    'an event left out',
    fitted((pack) => pack.lines('events.csv', (lines) => lines.toSpliced(3, 1))),
  ),
  forgery('events.csv', 'events-csv', 'an event more', appended('events.csv')),
  forgery(
    'events.jsonl',
    'events-jsonl',
    'the details of an event in JSON',
    inLine('events.jsonl', 'a wrong address', 'a wrong address', 'their wish'),
  ),
  forgery(
    'events.jsonl',
    'events-jsonl',
    'an action twice',
    inLine('events.jsonl', 'invoice.void', '"action" :', '"action" : "invoice.credit", "action" :'),
  ),
  forgery(
    'payments.csv',
    'payments-csv',
    'the amount of a payment',
    inLine('payments.csv', 'FT-1', ',5.00,', ',6.00,'),
  ),
  forgery('payments.csv', 'payments-csv', 'a payment left out', shortened('payments.csv')),
  forgery(
    'payment-moves.csv',
    'payments-csv',
    'what a payment paid',
    inLine('payment-moves.csv', 'applied', 'INV-2026-000004', 'INV-2026-000006'),
  ),
  forgery('payment-moves.csv', 'payments-csv', 'a move left out', shortened('payment-moves.csv')),
  forgery(
    'credit-moves.csv',
    'payments-csv',
    'the amount of credit',
    inLine('credit-moves.csv', 'applied', '1.50', '0.50'),
  ),
  forgery(
    'journal.csv',
    'journal-csv',
    'an account of a posting',
    inLine('journal.csv', 'document_issued', ':p-1,', ':p-9,'),
  ),
  forgery(
    'journal.csv',
    'journal-csv',
    'a reference of a posting',
    inLine('journal.csv', 'credit_applied', /,CN-2026-000001$/, ',CN-2026-000002'),
  ),
  forgery(
    'journal.csv',
    'journal-csv',
    'an amount of a sale',
    inLine('journal.csv', 'quote_accepted', ',28.00,', ',29.00,'),
  ),
  forgery(
    'journal.csv',
    'journal-csv',
    'a posting before the first month',
    inLine('journal.csv', 'quote_accepted', '2026-07-15', '2026-01-15'),
  ),
  forgery(
    'journal.csv',
    'journal-csv',
    'opening balances',
    fitted((pack) =>
      pack.edit('opening-balances.csv', (text) => `${text}assets:bank,USD,5.00\nequity:other,USD,-5.00\n`),
    ),
  ),
];

/** Everything sealed again, and the same in itself: only what left the house shows it. */
const rewritten = resealed((pack) =>
  pack.edit(JULY, (text) => text.replace('issued_on 2026-08-01', 'issued_on 2026-08-02')),
);
const againstPrevious: Forgery['args'] = ({ previous }) => ['--previous', previous];
const held =
  (month: string): Forgery['args'] =>
  ({ manifest }) => ['--seal', `${month}=${manifest.months.find((each) => each.month === month)?.seal}`];
/** Without its last month, which is said to be open. */
const reopened = (pack: Forger) => {
  pack.remove('sealed/2026-10');
  pack.change((manifest) => {
    Object.assign(manifest.months.at(-1) as object, { seal: null });
  });
  pack.fit();
};

const ELSEWHERE: readonly Forgery[] = [
  forgery('previous', 'events-csv', 'all months sealed again, against an earlier pack', rewritten, againstPrevious),
  forgery('held seals', 'events-csv', 'all months sealed again, against one seal', rewritten, held('2026-10')),
  forgery('held seals', 'events-csv', 'all months sealed again, against the first seal', rewritten, held('2026-07')),
  forgery('previous', 'journal-csv', 'a month that was sealed and is open', reopened, againstPrevious),
  forgery('held seals', 'journal-csv', 'a month whose seal you hold and that is open', reopened, held('2026-10')),
  forgery(
    'previous',
    'events-csv',
    'an earlier pack that was changed itself',
    (pack) => pack.write('../changed', basename(pack.folder)),
    ({ previous }) => ['--previous', dirname(previous)],
  ),
];

export const FORGERIES: readonly Forgery[] = [
  ...[...LAYOUT, ...FILES, ...MANIFEST, ...RECORDS, ...TABLES, ...SEALS],
  ...[...EVIDENCE, ...BOOKS, ...LEDGER_DATA, ...OTHER_DATA, ...ELSEWHERE, ...FORGED_JOURNALS],
];
