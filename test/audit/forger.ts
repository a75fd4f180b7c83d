/** Changes packs as somebody would who means to deceive: the manifest fits, and if asked for, so do all seals. */
import { createHash } from 'node:crypto';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { Decimal } from 'decimal.js';
import { leafHash, MerkleTree } from '../../src/seals/merkle.ts';
import { signatureLine, signRecord } from '../../src/seals/signature.ts';
import { SEAL_KEY } from '../support/seal-keys.ts';

const sha256 = (content: string | Buffer) => createHash('sha256').update(content).digest('hex');

interface Listed {
  name: string;
  bytes: number;
  sha256: string;
  rows: number;
  totals?: Record<string, Record<string, string>>;
}
interface MonthInPack {
  month: string;
  seal: string | null;
  previous: string | null;
  books_seal: string | null;
}
export interface Manifest {
  [key: string]: unknown;
  from: string;
  to: string;
  months: MonthInPack[];
  files: Listed[];
}

function rootOf(lines: readonly string[]): string {
  const tree = new MerkleTree();
  for (const line of lines) tree.add(leafHash(Buffer.from(line)));
  return tree.finish().root.toString('hex');
}

/** Cells of a .tsv by column. */
export type Row = Record<string, string>;

export class Forger {
  readonly folder: string;

  constructor(honest: string, folder: string) {
    cpSync(honest, folder, { recursive: true });
    this.folder = folder;
  }

  path = (name: string) => join(this.folder, name);
  text = (name: string) => readFileSync(this.path(name), 'utf8');
  write = (name: string, content: string | Buffer) => writeFileSync(this.path(name), content);
  remove = (name: string) => rmSync(this.path(name), { recursive: true });

  /** Changes a file, and nothing else. */
  edit(name: string, change: (text: string) => string, orNot = false): void {
    const before = this.text(name);
    const after = change(before);
    if (after === before && !orNot) throw new Error(`${name} was not changed`);
    this.write(name, after);
  }

  lines(name: string, change: (lines: string[]) => string[]): void {
    this.edit(name, (text) => `${change(text.trimEnd().split('\n')).join('\n')}\n`);
  }

  /** Changes the rows of a .tsv. */
  rows(name: string, change: (rows: Row[]) => Row[] | undefined, orNot = false): void {
    const edited = (text: string) => {
      const [header = '', ...lines] = text.trimEnd().split('\n');
      const columns = header.split('\t');
      const rows = lines.map(
        (line) => Object.fromEntries(line.split('\t').map((cell, at) => [columns[at], cell])) as Row,
      );
      const changed = change(rows) ?? rows;
      return `${[header, ...changed.map((row) => columns.map((column) => row[column] ?? '\\N').join('\t'))].join('\n')}\n`;
    };
    this.edit(name, edited, orNot);
  }

  get manifest(): Manifest {
    return JSON.parse(this.text('manifest.json')) as Manifest;
  }

  set manifest(manifest: Manifest) {
    this.write('manifest.json', `${JSON.stringify(manifest, null, 2)}\n`);
  }

  change(work: (manifest: Manifest) => void): void {
    const manifest = this.manifest;
    work(manifest);
    this.manifest = manifest;
  }

  /** Makes the manifest fit the files of the folder. */
  fit(): void {
    this.change((manifest) => {
      const before = new Map(manifest.files.map((file) => [file.name, file]));
      const found = readdirSync(this.folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name).slice(this.folder.length + 1))
        .filter((name) => name !== 'manifest.json');
      manifest.files = found.map((name) => {
        const content = readFileSync(this.path(name));
        const old = before.get(name);
        const rows = /\.(txt|sig|tsr)$/.test(name)
          ? (old?.rows ?? 0)
          : Math.max(0, this.countRows(name, content.toString()));
        const file: Listed = { name, bytes: content.length, sha256: sha256(content), rows };
        if (old?.totals) file.totals = this.totals(name, Object.keys(Object.values(old.totals)[0] ?? {})) ?? old.totals;
        return file;
      });
    });
  }

  private countRows(name: string, text: string): number {
    const lines = text.split('\n').length - 1;
    if (!name.endsWith('.csv')) return name.endsWith('.jsonl') ? lines : lines - 1;
    try {
      return (parse(text) as unknown[]).length - 1;
    } catch {
      return lines - 1;
    }
  }

  private totals(name: string, columns: string[]): Listed['totals'] | undefined {
    const totals: NonNullable<Listed['totals']> = {};
    try {
      const rows = name.endsWith('.csv')
        ? (parse(this.text(name), { columns: true }) as Row[])
        : this.text(name)
            .trimEnd()
            .split('\n')
            .map((line) => JSON.parse(line) as Row);
      for (const row of rows) {
        const currency = row['currency'] ?? '';
        const sums = totals[currency] ?? {};
        totals[currency] = sums;
        for (const column of columns) sums[column] = new Decimal(sums[column] ?? 0).plus(row[column] ?? '').toFixed();
      }
    } catch {
      return undefined;
    }
    return Object.fromEntries(Object.entries(totals).sort(([one], [other]) => (one < other ? -1 : 1)));
  }

  /** Writes every seal and signature again, over the tables as they are now, and the manifest. */
  reseal(): void {
    // Seals of months cover what is said of books and of signatures, and books name the seals of months: until it fits.
    for (let before = ''; before !== JSON.stringify(this.manifest.months); ) {
      before = JSON.stringify(this.manifest.months);
      this.resealOnce();
    }
    this.fit();
  }

  private resealOnce(): void {
    const { months } = this.manifest;
    let before: string | undefined;
    for (const each of months) {
      if (each.seal === null) continue;
      const name = `sealed/${each.month}/record.txt`;
      const record = this.resealed(each.month, this.text(name), before);
      this.write(name, record);
      this.renameJournals(each.seal, sha256(record));
      each.seal = sha256(record);
      this.sign('month', each.month, record);
      before = `${each.month} ${each.seal}`;
    }
    const seals = new Map(months.map(({ month, seal }) => [month, seal]));
    before = undefined;
    for (const each of months) {
      if (each.books_seal === null) continue;
      const name = `books/${each.month}/record.txt`;
      let record = this.text(name);
      for (const table of ['entries', 'accounts'])
        record = record.replace(
          new RegExp(`^${table} .*$`, 'm'),
          `${table} ${this.measured(`books/${each.month}/${table}.tsv`)}`,
        );
      record = record.replace(/^sealed_after (\S+) .*$/m, (line, month: string) =>
        seals.get(month) ? `sealed_after ${month} ${seals.get(month)}` : line,
      );
      if (before !== undefined) record = record.replace(/^previous .*$/m, `previous ${before}`);
      this.write(name, record);
      this.renameJournals(each.books_seal, sha256(record));
      each.books_seal = sha256(record);
      this.sign('books', each.month, record);
      before = `${each.month} ${each.books_seal}`;
    }
    this.change((manifest) => {
      manifest.months = months;
    });
  }

  /** Signs a record with the operator's key, which the owner of the database has, and tells the facts about it. */
  private sign(kind: 'month' | 'books', month: string, record: string): void {
    const folder = kind === 'month' ? 'sealed' : 'books';
    const signature = signRecord(record, SEAL_KEY, this.manifest['installation'] as string);
    if (existsSync(this.path(`${folder}/${month}/record.sig`)))
      this.write(`${folder}/${month}/record.sig`, signatureLine(signature));
    this.retell('seal_signatures', (row) => {
      if (row['kind'] === kind && row['name'] === month)
        Object.assign(row, { seal: sha256(record), signature: signature.signature });
    });
    if (kind !== 'books') return;
    this.retell('book_closes', (row) => {
      if (row['month'] === month) Object.assign(row, { seal: sha256(record), record: record.replaceAll('\n', '\\n') });
    });
  }

  /** Journals that were handed to the general ledger name a seal, and their external ids its beginning. */
  private renameJournals(before: string, after: string): void {
    this.retell('gl_exports', (row) => {
      if (row['seal'] === before) row['seal'] = after;
    });
    for (const [file, length] of [
      ['gl-exports', 64],
      ['gl-lines', 6],
    ] as const)
      for (const name of [`${file}.csv`, `${file}.jsonl`])
        if (existsSync(this.path(name)))
          this.edit(name, (text) => text.replaceAll(before.slice(0, length), after.slice(0, length)), true);
  }

  /** Changes the facts of a table in all months. */
  retell(table: string, change: (row: Row) => void): void {
    for (const { month } of this.manifest.months) {
      const name = `sealed/${month}/${table}.tsv`;
      if (existsSync(this.path(name)) && this.text(name).includes('\n'))
        this.rows(name, (rows) => void rows.forEach(change), true);
    }
  }

  private measured(name: string): string {
    const text = this.text(name);
    return `${text.split('\n').length - 2} ${sha256(text)}`;
  }

  /** The number of facts, and the root over their lines and the header. */
  private factsOf(name: string): string {
    const lines = this.text(name).split('\n').slice(0, -1);
    return `${lines.length - 1} ${rootOf(lines)}`;
  }

  private resealed(month: string, record: string, before: string | undefined): string {
    const folder = `sealed/${month}`;
    const tables = readdirSync(this.path(folder)).filter((name) => name.endsWith('.tsv') && name !== 'ledger_rows.tsv');
    const facts = tables.sort().map((name) => `facts_of ${name.slice(0, -4)} ${this.factsOf(`${folder}/${name}`)}\n`);
    let changed = record.replace(/^facts_of .*\n/gm, '') + facts.join('');
    if (before !== undefined) changed = changed.replace(/^previous .*$/m, `previous ${before}`);
    if (!readdirSync(this.path(folder)).includes('ledger_rows.tsv')) return changed;
    const [header = '', ...lines] = this.text(`${folder}/ledger_rows.tsv`).trimEnd().split('\n');
    return changed
      .replace(/^rows \d+$/m, `rows ${lines.length}`)
      .replace(/^closed_with \d+/m, `closed_with ${lines.length}`)
      .replace(/^rows_root .*$/m, `rows_root ${rootOf(lines)}`)
      .replace(/^rows_columns .*$/m, `rows_columns ${header.split('\t').join(' ')}`);
  }
}
