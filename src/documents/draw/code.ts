/** The payment link as a QR code (ISO/IEC 18004), in squares that a phone reads from paper and from a screen. */
import { encodeQR } from 'qr';
import type { Box } from './ink.ts';

/** Light squares that a reader needs around the code. */
const QUIET_ZONE = 4;
/** The side of one square: 0.46 mm. Phones read 0.33 mm from paper that is not new any more, and no less. */
const SQUARE = 1.3;
const LEAST_SQUARE = 0.94;
/** The most that a code may take of a page, quiet zone included. */
const MOST_SIDE = 110;
/** Longer texts give more squares than fit: 857 bytes make a code of 109 squares a side, without its quiet zone. */
const MOST_BYTES = 857;

export interface Code {
  /** With the quiet zone, in points. */
  readonly side: number;
  /** The dark squares, joined along their rows, from a corner. */
  readonly boxesAt: (x: number, y: number) => Box[];
}

/** Undefined where a text is too long for a code that can be read at this size. */
export function codeOf(text: string): Code | undefined {
  if (Buffer.byteLength(text) > MOST_BYTES) return undefined;
  // A creased or stained sheet still reads with a seventh of it gone.
  const rows = encodeQR(text, 'raw', { ecc: 'medium', border: QUIET_ZONE });
  const square = Math.min(SQUARE, MOST_SIDE / rows.length);
  if (square < LEAST_SQUARE) return undefined;
  return {
    side: rows.length * square,
    boxesAt: (x, y) =>
      rows.flatMap((row, index) =>
        stretches(row).map(({ from, to }) => ({
          x: x + from * square,
          y: y + index * square,
          width: (to - from) * square,
          height: square,
        })),
      ),
  };
}

/** Where a row is dark. */
function stretches(row: readonly boolean[]): { from: number; to: number }[] {
  const found: { from: number; to: number }[] = [];
  for (const [at, dark] of row.entries()) {
    const last = found.at(-1);
    if (!dark) continue;
    if (last?.to === at) last.to = at + 1;
    else found.push({ from: at, to: at + 1 });
  }
  return found;
}
