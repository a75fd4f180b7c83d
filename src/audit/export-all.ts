/**
 * All kinds of packs of several months at once, for the audit of a year: `2026-07/ledger`, `2026-07/invoices`, …; the
 * documents and the journal of all months, such as `2026-07_2026-09/invoices`, for the balances at their end; and
 * `SHA256SUMS` with the SHA-256 of each manifest. Refusals: those of an export, argument_invalid.
 */
import { hash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Environment } from '#config/environment';
import { Database } from '#database/database';
import { refuse } from '#errors/refusals';
import { codeOf, draftOf } from '#files';
import { Month } from '#month';
import { EXPORT_KINDS, ExportRequest, exportPack } from './export.ts';
import { readBilledMonths } from './exports.sql.ts';
import { guarded, isZip, refuseTaken } from './pack.ts';
import { Zip } from './zip.ts';

const SUMS = 'SHA256SUMS';

export type AllRequest = Omit<ExportRequest, 'kind'> & {
  readonly format: 'csv' | 'jsonl';
};

type AllPacks = Readonly<{
  out: string;
  months: readonly Month[];
  packs: number;
  /** The SHA-256 of SHA256SUMS, which covers all manifests. */
  sums_sha256: string;
}>;

type Progress = Readonly<{
  /** Before each pack: how many are complete. */
  onPack?: (complete: number) => void;
  onBytes?: (bytes: number) => void;
}>;

/** Writes all packs or nothing. */
export async function exportAll(
  database: Pick<Database, 'reading' | 'readingBeside'>,
  environment: Environment,
  { from, to, format, out }: AllRequest,
  { onPack = () => {}, onBytes = () => {} }: Progress = {},
): Promise<AllPacks> {
  refuseTaken(out);
  const billed = await database.reading((tx) => readBilledMonths(tx, { from, to }));
  if (billed.length === 0) {
    throw refuse('argument_invalid', { argument: 'month', value: from, reason: 'begins a range without rows' });
  }
  const months = billed.map(({ month }) => month);
  const draft = draftOf(resolve(out));
  try {
    await guarded(out, () => mkdir(draft.path, { recursive: true }));
    const zip = isZip(out) ? new Zip(join(draft.path, '.zip')) : undefined;
    const sums: string[] = [];
    for (const { name, ...pack } of packsOf(months)) {
      onPack(sums.length);
      const request = { ...pack, format, out: join(draft.path, name) };
      const { files, manifest_sha256 } = await exportPack(database, environment, request, onBytes);
      sums.push(`${manifest_sha256}  ${name}/manifest.json\n`);
      const names = [...files.map((file) => file.name), 'manifest.json'].map((file) => `${name}/${file}`);
      await guarded(out, async () => zip?.add(draft.path, names));
    }
    const text = sums.join('');
    await guarded(out, () => writeFile(join(draft.path, SUMS), text, { flag: 'wx', flush: true }));
    await guarded(out, async () => {
      if (zip === undefined) return draft.publish();
      await zip.add(draft.path, [SUMS]);
      await zip.publish(resolve(out));
      await draft.discard();
    });
    return { out, months, packs: sums.length, sums_sha256: hash('sha256', text) };
  } catch (error) {
    await draft.discard().catch(() => {});
    if (codeOf(error) === 'EEXIST') throw refuse('export_exists', { out }, error);
    throw error;
  }
}

function packsOf(months: readonly Month[]) {
  const [from, to] = [months[0] as Month, months.at(-1) as Month];
  const whole = `${from}_${to}`;
  return [
    ...months.flatMap((month) =>
      EXPORT_KINDS.map((kind) => ({ name: `${month}/${kind}`, kind, from: month, to: month })),
    ),
    ...(from === to
      ? []
      : (['invoices', 'journal'] as const).map((kind) => ({ name: `${whole}/${kind}`, kind, from, to }))),
  ];
}
