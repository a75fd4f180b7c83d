/** The payment link as a QR code (ISO/IEC 18004), in squares large enough for phones, on paper and on a screen. */
import { encodeQR } from 'qr';
import { Box } from './canvas.ts';

/** Light squares that a reader needs around the code. */
const QUIET_ZONE = 4;
/** The side of one square in points, which is 0.46 mm. A code of many squares has smaller ones. */
const SQUARE = 1.3;
/** The longest side of a code, quiet zone included. */
const MOST_SIDE = 110;
/**
 * The capacity of version 20, which has 105 squares with the quiet zone. A square is then 0.37 mm; phones need 0.33 mm
 * on worn paper. zbar reads no larger code.
 */
const MOST_BYTES = 666;

export type Code = Readonly<{
  /** The code's side with the quiet zone, in points. */
  side: number;
  /** The side of a square. */
  unit: number;
  /** The dark squares, joined along their rows, from the code's corner. */
  boxes: readonly Box[];
}>;

/** The code of a text; undefined if the text is too long for a code that phones can read. */
export function codeOf(text: string): Code | undefined {
  if (Buffer.byteLength(text) > MOST_BYTES) return undefined;
  // Still readable if a seventh is missing, as on a creased or stained page.
  const rows = encodeQR(text, 'raw', { ecc: 'medium', border: QUIET_ZONE });
  const square = Math.min(SQUARE, MOST_SIDE / rows.length);
  return {
    side: rows.length * square,
    unit: square,
    boxes: rows.flatMap((row, y) =>
      stretches(row).map(({ from, to }) => ({ x: from, y, width: to - from, height: 1 })),
    ),
  };
}

/** The runs of dark squares in a row. */
function stretches(row: readonly boolean[]) {
  const found: { from: number; to: number }[] = [];
  for (const [at, dark] of row.entries()) {
    const last = found.at(-1);
    if (!dark) continue;
    if (last?.to === at) last.to = at + 1;
    else found.push({ from: at, to: at + 1 });
  }
  return found;
}
