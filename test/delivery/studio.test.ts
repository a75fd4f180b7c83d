/** Drawn in place or by threads, the same document is the same bytes. Threads run the compiled program: `npm test` makes it. */
import { expect, test } from 'vitest';
import { compiled } from '../support/program.ts';
import { creditNote, snapshot, statement } from '../support/snapshots.ts';

type Drawing = typeof import('../../src/delivery/drawing.ts');

test('a few documents are drawn in place, many by threads, and each has the same bytes either way', async () => {
  const { openStudio } = (await import(compiled('src/delivery/drawing.js'))) as Drawing;
  const faces = [snapshot(), creditNote(), statement()];
  const [few, many] = [openStudio(faces.length), openStudio(1000)];
  try {
    const inPlace = await Promise.all(faces.map((each) => few.draw(each)));
    const byThreads = await Promise.all(faces.map((each) => many.draw(each)));
    expect(byThreads.map((pdf) => pdf.toString('latin1'))).toEqual(inPlace.map((pdf) => pdf.toString('latin1')));
    expect(inPlace.every((pdf) => pdf.subarray(0, 5).equals(Buffer.from('%PDF-')))).toBe(true);
  } finally {
    await few.close();
    await many.close();
  }
});
