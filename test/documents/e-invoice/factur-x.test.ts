/** Factur-X: the PDF that carries its e-invoice, read back with other people's programs. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { drawEInvoice } from '../../../src/documents/e-invoice/write.ts';
import { renderDocument } from '../../../src/documents/pdf/render.ts';
import { euroCredit, euroInvoice, factsOf } from '../../support/e-invoices.ts';
import { judge } from '../../support/en16931.ts';
import { needs } from '../../support/tools.ts';

const DOCUMENTS = { invoice: euroInvoice(), 'credit note': euroCredit() };

describe.each(Object.entries(DOCUMENTS))('the Factur-X PDF of an %s', (_name, snapshot) => {
  const xml = drawEInvoice(snapshot, factsOf('facturx', { corrects_issued_on: '2026-11-01' }));
  let folder: string;
  let file: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'factur-x-'));
    file = join(folder, 'document.pdf');
    writeFileSync(file, await renderDocument(snapshot, { eInvoice: xml }));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const run = (program: string, ...args: string[]): string => execFileSync(program, args, { encoding: 'utf8' });

  test('gives back the same XML, byte for byte, which breaks no rule', (context) => {
    needs('pdfdetach', context);
    const extracted = join(folder, 'extracted.xml');
    run('pdfdetach', '-savefile', 'factur-x.xml', '-o', extracted, file);
    expect(readFileSync(extracted).equals(xml)).toBe(true);
    expect(judge(readFileSync(extracted)).failed).toEqual([]);
  });

  test('is a sound PDF whose file is an alternative to its pages', (context) => {
    needs('qpdf', context);
    expect(run('qpdf', '--check', file)).toContain('No syntax or stream encoding errors found');
    const objects = run('qpdf', '--qdf', '--object-streams=disable', file, '-');
    for (const said of [
      '/AFRelationship /Alternative',
      '/AF [',
      '/Subtype /text#2fxml',
      '/OutputIntents',
      '/S /GTS_PDFA1',
    ]) {
      expect(objects).toContain(said);
    }
  });

  test('says that it is a tagged PDF/A-3a with a Factur-X invoice of the profile EN 16931', (context) => {
    needs('pdfinfo', context);
    expect(run('pdfinfo', file)).toMatch(/Tagged: +yes/);
    const metadata = run('pdfinfo', '-meta', file);
    for (const said of [
      '<pdfaid:part>3</pdfaid:part>',
      '<pdfaid:conformance>A</pdfaid:conformance>',
      '<fx:DocumentFileName>factur-x.xml</fx:DocumentFileName>',
      '<fx:ConformanceLevel>EN 16931</fx:ConformanceLevel>',
      '<pdfaSchema:prefix>fx</pdfaSchema:prefix>',
    ]) {
      expect(metadata).toContain(said);
    }
    expect(run('pdfinfo', '-struct', file)).toContain('Document');
  });

  test('has the same bytes each time', async () => {
    expect((await renderDocument(snapshot, { eInvoice: xml })).equals(readFileSync(file))).toBe(true);
  });
});

test('a document without an e-invoice is no PDF/A and carries no file', async () => {
  const pdf = (await renderDocument(euroInvoice())).toString('latin1');
  for (const said of ['/AF ', 'EmbeddedFile', 'OutputIntent', 'pdfaid']) expect(pdf).not.toContain(said);
});
