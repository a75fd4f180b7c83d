/** What people get of old months, to be compared with what they got before the months left the database. */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { invoiceRerun } from '../../src/actions/invoice/rerun.ts';
import { previewAction } from '../../src/actions/run.ts';
import { needRows } from '../../src/archive/rows.ts';
import { type ExportFormat, type ExportKind, exportPack } from '../../src/audit/export.ts';
import { readDocumentRows, readScopeOf } from '../../src/delivery/documents.sql.ts';
import { provePartner } from '../../src/log/partner-proof.ts';
import type { Month } from '../../src/month.ts';
import { readBalances } from '../../src/reports/balances.sql.ts';
import { readCloseReport } from '../../src/reports/close.ts';
import { readCoverage } from '../../src/reports/coverage.ts';
import type { World } from '../support/world.ts';

/** What people get of old months. */
export async function answersOf(world: World): Promise<Record<string, unknown>> {
  const read = world.database.reading;
  const [document] = await world.documents({ months: ['2026-02' as Month], partnerId: 'p-1' });
  const [{ document_id: id } = { document_id: 0 }] = await world.sql<{ document_id: number }>(
    'SELECT document_id FROM documents WHERE number = $1',
    [document?.number],
  );
  const csv = () =>
    read(async (tx) => {
      await needRows(tx, await readScopeOf(tx, { documentIds: [id] }));
      const parts: string[] = [];
      for await (const part of readDocumentRows(tx, id)) parts.push(part);
      return parts.join('');
    });
  const pack = async (kind: ExportKind, format: ExportFormat) => {
    const out = join(world.home, 'pack');
    const request = { kind, format, out, from: '2026-02' as Month, to: '2026-03' as Month };
    await exportPack(world.database, world.environment, request);
    const files = readdirSync(out, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
    const content = files.map((file) => [file.name, readFileSync(join(file.parentPath, file.name), 'utf8')]);
    rmSync(out, { recursive: true });
    return Object.fromEntries(content.filter(([name]) => name !== 'manifest.json'));
  };
  return {
    csv: await csv(),
    ledger: await pack('ledger', 'csv'),
    journal: await pack('journal', 'hledger'),
    proof: await read(async (tx) => {
      const month = '2026-02' as Month;
      await needRows(tx, { from: month, to: month, partnerIds: ['p-1'] });
      return provePartner(tx, { partnerId: 'p-1', month }, (numbers) => needRows(tx, { numbers }));
    }),
    close: await read((tx) => readCloseReport(tx, '2026-02' as Month)),
    balances: await read((tx) => readBalances(tx, '2026-02-15')),
    coverage: await read((tx) => readCoverage(tx, { asOf: undefined })),
    differences: (await world.verify()).checks.flatMap((each) => each.differences),
    rerun: (await previewAction({ ...world, ...{ reporter: {} } }, invoiceRerun, { month: '2026-02' as Month })).report,
  };
}
