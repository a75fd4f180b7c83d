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
import { needs, type Tool, tool } from '../../support/tools.ts';

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

  const run = (program: Tool, ...args: string[]): string => execFileSync(tool(program), args, { encoding: 'utf8' });

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

  test('embeds every font, with the letters that its glyphs stand for', (context) => {
    needs('pdffonts', context);
    const fonts = run('pdffonts', file).trim().split('\n').slice(2);
    expect(fonts.length).toBeGreaterThan(0);
    // Embedded, subset, with a map to Unicode.
    for (const font of fonts) expect(font).toMatch(/ yes yes yes +\d+ +0$/);
  });

  test('has what PDF/A-3 demands of a file, and nothing that it forbids', (context) => {
    needs('qpdf', context);
    // The comment of bytes above 127 in the second line, and an identifier.
    expect([...readFileSync(file).subarray(9, 14)].slice(1).every((byte) => byte > 127)).toBe(true);
    const objects = run('qpdf', '--qdf', '--object-streams=disable', file, '-');
    for (const demanded of ['/ID [', '/Lang (', '/Marked true', '/StructTreeRoot', '/Type /Metadata']) {
      expect(objects).toContain(demanded);
    }
    for (const forbidden of [
      ...[
        '/Encrypt',
        '/JavaScript',
        '/JS ',
        '/Launch',
        '/XFA',
        '/AA ',
        '/OpenAction',
        '/LZWDecode',
        '/Movie',
        '/Sound',
      ],
      // Colors that its output intent does not cover.
      ...['/DeviceCMYK', '/Separation', '/Interpolate true'],
    ]) {
      expect(objects).not.toContain(forbidden);
    }
    // What can be clicked is printed as well, and not hidden.
    const links = objects.match(/\/Subtype \/Link\n/g) ?? [];
    expect(objects.match(/\/F 4\n/g) ?? []).toHaveLength(links.length);
  });

  test('says the same in its metadata and in its information dictionary', (context) => {
    needs('pdfinfo', context);
    needs('xmllint', context);
    const metadata = run('pdfinfo', '-meta', file);
    expect(execFileSync(tool('xmllint'), ['--noout', '-'], { input: metadata, encoding: 'utf8' })).toBe('');
    const info = run('pdfinfo', '-isodates', file);
    const said = (field: string) => new RegExp(`^${field}: +(.*)$`, 'm').exec(info)?.[1] ?? 'nothing';
    const written = (name: string) =>
      new RegExp(`<${name}>\\s*(?:<[^>]+>\\s*)*([^<]*?)\\s*<`).exec(metadata)?.[1] ?? 'nothing';
    expect(written('dc:title')).toBe(said('Title'));
    expect(written('xmp:CreatorTool')).toBe(said('Creator'));
    expect(written('pdf:Producer')).toBe(said('Producer'));
    const at = (text: string) => new Date(text.replace(/([+-]\d\d)$/, '$1:00')).toISOString();
    expect(at(written('xmp:CreateDate'))).toBe(at(said('CreationDate')));
    expect(at(written('xmp:ModifyDate'))).toBe(at(said('ModDate')));
  });

  test('has the same bytes each time', async () => {
    expect((await renderDocument(snapshot, { eInvoice: xml })).equals(readFileSync(file))).toBe(true);
  });
});

test('a document without an e-invoice is no PDF/A and carries no file', async () => {
  const pdf = (await renderDocument(euroInvoice())).toString('latin1');
  for (const said of ['/AF ', 'EmbeddedFile', 'OutputIntent', 'pdfaid']) expect(pdf).not.toContain(said);
});
