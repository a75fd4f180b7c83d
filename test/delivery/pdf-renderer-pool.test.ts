/** Rendered in place or by threads, a document has the same bytes. Threads run the compiled program: `npm test` makes it. */
import { expect, test } from 'vitest';
import { compiled } from '../support/program.ts';
import { creditNote, snapshot, statement } from '../support/snapshots.ts';

type Pool = typeof import('../../src/delivery/pdf-renderer-pool.ts');

test('a few documents are rendered in place, many by threads, and each has the same bytes either way', async () => {
  const { PdfRendererPool } = (await import(compiled('src/delivery/pdf-renderer-pool.js'))) as Pool;
  const snapshots = [snapshot(), creditNote(), statement()];
  const [few, many] = [new PdfRendererPool(snapshots.length), new PdfRendererPool(1000)];
  try {
    const inPlace = await Promise.all(snapshots.map((each) => few.render(each)));
    const byThreads = await Promise.all(snapshots.map((each) => many.render(each)));
    expect(byThreads.map((pdf) => pdf.toString('latin1'))).toEqual(inPlace.map((pdf) => pdf.toString('latin1')));
    expect(inPlace.every((pdf) => pdf.subarray(0, 5).equals(Buffer.from('%PDF-')))).toBe(true);
  } finally {
    await few.close();
    await many.close();
  }
});
