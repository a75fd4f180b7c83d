/** Issued documents rendered again: with their logo, under their renderer version, and as void copies. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { simpleParser } from 'mailparser';
import { getDocument } from 'pdfjs-dist/legacy/build/pdf.mjs';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { verify } from '../../src/audit/verify.ts';
import { recordPdfs } from '../../src/delivery/documents.sql.ts';
import { currentRenderer } from '../../src/delivery/pdf-renderer-pool.ts';
import { documentSnapshot } from '../../src/documents/document.ts';
import { readDocuments, readPdf } from '../../src/documents/documents.sql.ts';
import { renderDocument } from '../../src/documents/pdf/render.ts';
import { renderVoidCopy } from '../../src/documents/void-copy.ts';
import { startOver } from '../close/start-over.ts';
import { pngLogo } from '../support/logos.ts';
import { reckoner } from '../support/program.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());
beforeEach(() => startOver(world));

const withLogo = (logo: ReturnType<typeof pngLogo> | null) => {
  world.settings = { ...world.settings, issuer: { ...world.settings.issuer, logo } };
};

async function textOf(pdf: Buffer): Promise<string[]> {
  const document = await getDocument({ data: new Uint8Array(pdf), verbosity: 0 }).promise;
  const texts: string[] = [];
  for (let number = 1; number <= document.numPages; number += 1) {
    const { items } = await (await document.getPage(number)).getTextContent();
    texts.push(items.map((item) => ('str' in item ? item.str : '')).join(' '));
  }
  await document.destroy();
  return texts;
}

const kept = async (number: string): Promise<Buffer> =>
  world.database.reading(async (tx) => {
    const [row] = await readDocuments(tx, { number });
    return (await readPdf(tx, row?.document_id as number)) as Buffer;
  });

const differences = () =>
  world.database.readingBeside(async (tx, beside) =>
    (await verify(tx, undefined, { beside })).checks.flatMap((check) => check.differences),
  );

const images = (pdf: Buffer): number => pdf.toString('latin1').split('/Subtype /Image').length - 1;

async function closeJuly(): Promise<void> {
  await world.partners([partner()]);
  await world.rows([quote()]);
  await world.close();
}

test('an old document keeps its logo, and a new one has the new logo', async () => {
  const [first, second] = [pngLogo({ width: 200 }), pngLogo({ width: 300 })];
  withLogo(first);
  await closeJuly();
  await world.deliver();
  withLogo(second);
  world.at('2026-09-02T10:00:00Z');
  await world.rows([quote({ accepted_at: '2026-08-10T12:00:00Z' })]);
  await world.close();
  await world.deliver();
  withLogo(null);
  world.at('2026-10-02T10:00:00Z');
  await world.rows([quote({ accepted_at: '2026-09-10T12:00:00Z' })]);
  await world.close();
  await world.deliver();

  const pdfs = await Promise.all(['000001', '000002', '000003'].map((each) => kept(`INV-2026-${each}`)));
  // A picture with transparency is two images.
  expect(pdfs.map(images)).toEqual([2, 2, 0]);
  expect(pdfs[0]?.toString('latin1')).toContain('/Width 200');
  expect(pdfs[1]?.toString('latin1')).toContain('/Width 300');
  expect(await world.sql('SELECT sha256, width FROM logos ORDER BY width')).toEqual([
    { sha256: first.sha256, width: 200 },
    { sha256: second.sha256, width: 300 },
  ]);
  expect(await differences()).toEqual([]);
});

test('the same logo is kept once, and can be neither changed nor deleted', async () => {
  withLogo(pngLogo());
  await closeJuly();
  world.at('2026-09-02T10:00:00Z');
  await world.rows([quote({ accepted_at: '2026-08-10T12:00:00Z' })]);
  await world.close();
  expect(await world.sql('SELECT count(*)::int AS logos FROM logos')).toEqual([{ logos: 1 }]);
  expect(await world.sql('SELECT count(*)::int AS versions FROM issuer_versions')).toEqual([{ versions: 1 }]);
  await expect(world.sql(`UPDATE logos SET width = 1`)).rejects.toThrow('append-only');
  await expect(
    world.sql(`INSERT INTO logos (sha256, media_type, width, height, content, first_used_at)
               VALUES ('${'0'.repeat(64)}', 'image/png', 1, 1, '\\x00', now())`),
  ).rejects.toThrow('logo_is_its_hash');
  await expect(
    world.sql(`INSERT INTO issuer_versions (content, first_used_at)
               VALUES ('{"logo": {"sha256": "${'0'.repeat(64)}"}}', now())`),
  ).rejects.toThrow('issuer_logo_kept');
});

/** Keeps a PDF of July's invoice as a program of that renderer version did. */
async function keepPdf(rendererVersion: number, libraries: Readonly<Record<string, string>>, pdf?: Buffer) {
  await world.database.transaction(async (tx) => {
    const [row] = await readDocuments(tx, {});
    if (row === undefined) throw new Error('no document');
    const snapshot = documentSnapshot(row, { paymentLink: null, instructions: null, instructionsChanged: false });
    const rendered = pdf ?? (await renderDocument(snapshot));
    await recordPdfs(tx, [
      {
        documentId: row.document_id,
        rendererVersion,
        libraries,
        instructionVersionId: null,
        instructionsChanged: false,
        sha256: createHash('sha256').update(rendered).digest('hex'),
        pdf: rendered,
        now: '2026-08-01T10:00:00Z',
      },
    ]);
  });
}

test('a document of this renderer version is rendered again to the same bytes', async () => {
  await closeJuly();
  await keepPdf(currentRenderer.version, currentRenderer.libraries);
  expect(await differences()).toEqual([]);
});

test('a PDF that its version would have rendered differently is found', async () => {
  await closeJuly();
  await keepPdf(currentRenderer.version, currentRenderer.libraries, Buffer.from('%PDF-1.7 and something else'));
  expect(await differences()).toEqual([
    { subject: 'INV-2026-000001', detail: 'rendering its snapshot again gives another PDF' },
  ]);
});

test('a PDF of a later program or of other libraries is checked only by its hash', async () => {
  await closeJuly();
  await keepPdf(99, currentRenderer.libraries, Buffer.from('%PDF-1.7 of the future'));
  expect(await differences()).toEqual([]);
});

test('the void copy of each kind of document shows the void, and the issued PDF does not change', async () => {
  await closeJuly();
  await world.deliver();
  const issued = await kept('INV-2026-000001');
  const env = {
    RECKONER_HOME: world.home,
    DATABASE_URL: world.databaseUrl,
    RECKONER_NOW: '2026-08-03T10:00:00Z',
  };
  const run = (...args: string[]) => reckoner(['--json', ...args], { env });
  expect(await run('invoice', 'void', 'INV-2026-000001', '--reason', 'Wrong <entity>')).toMatchObject({ status: 0 });
  const file = join(world.home, 'copy.pdf');
  const made = await run('invoice', 'pdf', 'INV-2026-000001', '--void-copy', '-o', file);
  expect(made).toMatchObject({ status: 0 });
  const [alone] = await textOf(readFileSync(file));
  expect(alone).toContain('VOID SINCE August 3, 2026');
  expect(alone).toContain('Reason: Wrong <entity>');
  expect(alone).toContain('Nothing replaces it so far.');

  expect(await run('invoice', 'rerun', '--month', '2026-07')).toMatchObject({ status: 0 });
  await run('invoice', 'pdf', 'INV-2026-000001', '--void-copy', '-o', file);
  expect((await textOf(readFileSync(file)))[0]).toContain('INV-2026-000002 replaces it.');
  const [replacement] = await textOf(await kept('INV-2026-000002'));
  expect(replacement).toContain('This document replaces INV-2026-000001, which is void.');
  expect((await kept('INV-2026-000001')).equals(issued)).toBe(true);
  expect(await differences()).toEqual([]);

  const copy = await world.database.reading(async (tx) => {
    const [row] = await readDocuments(tx, { number: 'INV-2026-000001', withLogos: true });
    return renderVoidCopy(world.environment, row as NonNullable<typeof row>);
  });
  expect(copy.equals(readFileSync(file))).toBe(true);
}, 120_000);

test('an adjustment says what it credits, and its e-mail attaches no rows', async () => {
  await closeJuly();
  await world.deliver();
  const env = { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-08-03T10:00:00Z' };
  const credit = ['invoice', 'credit', 'INV-2026-000001', '--amount', '2.00', '--reason', 'A goodwill credit'];
  expect(await reckoner(['--json', ...credit], { env })).toMatchObject({ status: 0 });
  const [text] = await textOf(await kept('CN-2026-000001'));
  expect(text).toContain('Credit against invoice INV-2026-000001');
  expect(text).toContain('Reason: A goodwill credit');
  expect(await differences()).toEqual([]);
  const outbox = join(world.home, 'outbox');
  const mail = readdirSync(outbox).find((name) => name.startsWith('CN-2026-000001')) ?? '';
  const { attachments, subject } = await simpleParser(readFileSync(join(outbox, mail)));
  expect(attachments.map(({ filename }) => filename)).toEqual(['CN-2026-000001.pdf']);
  expect(subject).toContain('USD 2.00 credited against invoice INV-2026-000001');
}, 120_000);
