/**
 * Invoices drawn by one process, beside the least that pdfkit could do, and beside pdfmake and @react-pdf/renderer.
 *
 * All draw the very same pieces of text at the same places with the same two fonts, which is all that they do: ours
 * also lays the document out, tags it for screen readers and draws its rules, panels and QR code. The floor is pdfkit
 * bare, with fonts whose tables are decoded once for all its documents.
 *
 * The two others are no dependencies of this project: `npm install --prefix test/bench/peers` fetches them, and without
 * that they are skipped. By itself: npx tsc -p test/bench && node dist/test/bench/pdf.js
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { create, type Font } from 'fontkit';
import PDFDocument from 'pdfkit';
import { PdfCanvas } from '../../src/documents/pdf/canvas.ts';
import { paperSize } from '../../src/documents/pdf/content.ts';
import { renderDocument } from '../../src/documents/pdf/render.ts';
import { readTemplate, readTemplateFile } from '../../src/documents/pdf/template.ts';
import type { Run } from '../../src/documents/pdf/text.ts';
import { packageRoot } from '../../src/package.ts';
import { snapshot } from '../support/snapshots.ts';
import { isProgram, type Measured, measured, median } from './measured.ts';

export interface PdfOptions {
  /** Of each drawer in a round. */
  readonly documents?: number;
  readonly rounds?: number;
}

/** A piece of text as ours draws it. */
interface Piece {
  readonly font: 'regular' | 'bold';
  readonly size: number;
  readonly text: string;
  readonly x: number;
  /** Of its baseline. */
  readonly y: number;
}

interface Recording {
  readonly size: readonly [width: number, height: number];
  readonly pages: readonly (readonly Piece[])[];
}

type Draw = () => Promise<Uint8Array>;

export async function measurePdf({ documents = 40, rounds = 7 }: PdfOptions = {}): Promise<Measured[]> {
  const recording = await record();
  const floor = 'bare pdfkit';
  const drawers = new Map<string, Draw>([
    ['ours', () => renderDocument(snapshot())],
    [floor, () => drawBare(recording)],
    ...(await peers(recording)),
  ]);
  await time(drawers, 20); // the compiler of JavaScript and everything that is decoded once
  const took: ReadonlyMap<string, number>[] = [];
  for (let round = 0; round < rounds; round += 1) took.push(await time(drawers, documents));
  const of = (name: string) => median(took.map((each) => each.get(name) ?? Number.NaN));
  return [...drawers.keys()]
    .filter((name) => name !== 'ours')
    .map((name) =>
      measured(
        { measure: `pdf, beside ${name}`, ours: of('ours'), floor: of(name), unit: 'ms a document' },
        { atMost: name === floor ? 0.45 : 1 },
      ),
    );
}

/** Milliseconds a document of each, who take turns: a machine that does other things slows all of them alike. */
async function time(drawers: ReadonlyMap<string, Draw>, documents: number): Promise<ReadonlyMap<string, number>> {
  const took = new Map<string, number>();
  for (let count = 0; count < documents; count += 1) {
    for (const [name, draw] of drawers) {
      const began = performance.now();
      const pdf = await draw();
      took.set(name, (took.get(name) ?? 0) + (performance.now() - began) / documents);
      if (Buffer.from(pdf.subarray(0, 5)).toString() !== '%PDF-') throw new Error(`${name} drew no PDF`);
    }
  }
  return took;
}

// --- What is drawn ------------------------------------------------------------------------------------------------------

/** Draws the invoice once and notes every piece of text that reaches the canvas. */
async function record(): Promise<Recording> {
  const { prototype } = PdfCanvas;
  const { text, addPage, switchToPage } = prototype;
  const pages: Piece[][] = [];
  let page = -1;
  Object.assign(prototype, {
    addPage(this: PdfCanvas) {
      addPage.call(this);
      page = pages.push([]) - 1;
    },
    switchToPage(this: PdfCanvas, index: number) {
      page = index;
      switchToPage.call(this, index);
    },
    text(this: PdfCanvas, run: Run, x: number, baseline: number) {
      pages[page]?.push({ font: run.style.font, size: run.style.size, text: run.text, x, y: baseline });
      text.call(this, run, x, baseline);
    },
  });
  try {
    await renderDocument(snapshot());
  } finally {
    Object.assign(prototype, { text, addPage, switchToPage });
  }
  const pieces = pages.flat();
  if (pieces.length < 100) throw new Error(`an invoice has more than ${pieces.length} pieces of text`);
  return { size: paperSize(readTemplate().theme, snapshot()), pages };
}

const FONTS = { regular: 'NotoSans-Regular.ttf', bold: 'NotoSans-Bold.ttf' } as const;

/** How far a font reaches above its baseline, in parts of the size: where others want the top of a line. */
const ASCENT = 1.069;

// --- Bare pdfkit --------------------------------------------------------------------------------------------------------

const decoded = new Map<string, { data: Buffer; font: Font }>();

/** A font of one document's own, as pdfkit needs it, over tables that are decoded once. */
function bareFont(file: string): Font {
  const data = decoded.get(file)?.data ?? readTemplateFile('fonts', file);
  const known = decoded.get(file) ?? { data, font: create(data) };
  decoded.set(file, known);
  const own = create(data);
  own._tables = known.font._tables;
  return own;
}

async function drawBare({ size, pages }: Recording): Promise<Buffer> {
  const document = new PDFDocument({ size: [...size], margin: 0, autoFirstPage: false, font: '' });
  // pdfkit takes parsed fonts since 0.20; its types do not say so yet.
  for (const [name, file] of Object.entries(FONTS)) {
    document.registerFont(name, bareFont(file) as unknown as Uint8Array);
  }
  const chunks: Buffer[] = [];
  const finished = new Promise<Buffer>((resolve, reject) => {
    document.on('data', (chunk: Buffer) => chunks.push(chunk));
    document.on('end', () => resolve(Buffer.concat(chunks)));
    document.on('error', reject);
  });
  for (const pieces of pages) {
    document.addPage();
    for (const { font, size: points, text, x, y } of pieces) {
      document.font(font).fontSize(points).text(text, x, y, { lineBreak: false, baseline: 'alphabetic' });
    }
  }
  document.end();
  return finished;
}

// --- The others ---------------------------------------------------------------------------------------------------------

const PEERS = join(packageRoot, 'test', 'bench', 'peers');

async function peers(recording: Recording): Promise<[name: string, draw: Draw][]> {
  try {
    return [
      ['pdfmake', await pdfmake(recording)],
      ['@react-pdf/renderer', await reactPdf(recording)],
    ];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error;
    process.stderr.write('pdfmake and @react-pdf/renderer are skipped: npm install --prefix test/bench/peers\n');
    return [];
  }
}

const { resolve: find } = createRequire(join(PEERS, 'package.json'));
const fontFile = (file: string): string => join(packageRoot, 'templates', 'fonts', file);

/** What is used of pdfmake 0.3. */
interface PdfMake {
  addFonts(fonts: Record<string, Record<string, string>>): void;
  setUrlAccessPolicy(allows: (url: string) => boolean): void;
  setLocalAccessPolicy(allows: (path: string) => boolean): void;
  createPdf(definition: object): { getBuffer(): Promise<Uint8Array> };
}

async function pdfmake({ size: [width, height], pages }: Recording): Promise<Draw> {
  const { default: library } = (await import(pathToFileURL(find('pdfmake')).href)) as { default: PdfMake };
  library.addFonts({ Noto: { normal: fontFile(FONTS.regular), bold: fontFile(FONTS.bold) } });
  library.setUrlAccessPolicy(() => false);
  library.setLocalAccessPolicy((path) => path.startsWith(dirname(fontFile(FONTS.regular))));
  const content = () =>
    pages.flatMap((pieces, page) =>
      pieces.map(({ font, size, text, x, y }, index) => ({
        text,
        bold: font === 'bold',
        fontSize: size,
        absolutePosition: { x, y: y - ASCENT * size },
        ...(page > 0 && index === 0 ? { pageBreak: 'before' } : {}),
      })),
    );
  return () =>
    library
      .createPdf({
        pageSize: { width, height },
        pageMargins: 0,
        defaultStyle: { font: 'Noto' },
        content: content(),
      })
      .getBuffer();
}

/** What is used of React 19 and @react-pdf/renderer 4. */
interface React {
  createElement(type: unknown, properties: object | null, ...children: unknown[]): unknown;
}
interface ReactPdf {
  readonly Document: unknown;
  readonly Page: unknown;
  readonly Text: unknown;
  readonly Font: { register(font: { family: string; fonts: { src: string; fontWeight?: string }[] }): void };
  renderToBuffer(element: unknown): Promise<Uint8Array>;
}

async function reactPdf({ size: [width, height], pages }: Recording): Promise<Draw> {
  const react = createRequire(join(PEERS, 'package.json'))('react') as React;
  const { Document, Page, Text, Font, renderToBuffer } = (await import(
    pathToFileURL(find('@react-pdf/renderer')).href
  )) as ReactPdf;
  Font.register({
    family: 'Noto',
    fonts: [{ src: fontFile(FONTS.regular) }, { src: fontFile(FONTS.bold), fontWeight: 'bold' }],
  });
  const text = ({ font, size, text, x, y }: Piece) => {
    const weight = font === 'bold' ? 'bold' : 'normal';
    const style = { position: 'absolute', left: x, top: y - ASCENT * size, fontSize: size, fontWeight: weight };
    return react.createElement(Text, { style: { ...style, fontFamily: 'Noto' } }, text);
  };
  return () =>
    renderToBuffer(
      react.createElement(
        Document,
        null,
        ...pages.map((pieces) => react.createElement(Page, { size: [width, height] }, ...pieces.map(text))),
      ),
    );
}

if (isProgram(import.meta.url)) process.stdout.write(`${JSON.stringify(await measurePdf(), null, 2)}\n`);
