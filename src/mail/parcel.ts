/** Sends a message piece by piece, so that it is known how much of it may have arrived. */
import { Readable } from 'node:stream';

export const CALLED_OFF = 'it should no longer be sent';

/**
 * A message being sent. Nodemailer begins to read it after the server has answered DATA. It is then offered, and read
 * on only if it should still be sent. Until the last piece is read, its end has not been sent.
 */
export class Parcel extends Readable {
  /** Whether any part may have been sent. */
  begun = false;
  /** Whether the end may have been sent. */
  ended = false;
  private readonly content: Buffer;
  private readonly offer: () => Promise<boolean>;
  private readonly onEnded: () => void;
  private at = 0;

  constructor(content: Buffer, offer: () => Promise<boolean>, onEnded: () => void) {
    super();
    this.content = content;
    this.offer = offer;
    this.onEnded = onEnded;
  }

  override _read(size: number) {
    if (this.begun) this.pushPiece(size);
    else void this.begin(size);
  }

  private async begin(size: number) {
    this.begun = true;
    if (!(await this.offer())) this.destroy(new Error(CALLED_OFF));
    else if (!this.destroyed) this.pushPiece(size);
  }

  private pushPiece(size: number) {
    const piece = this.content.subarray(this.at, this.at + size);
    this.at += piece.length;
    if (this.at >= this.content.length && !this.ended) {
      this.ended = true;
      this.onEnded();
    }
    this.push(piece.length === 0 ? null : piece);
  }
}
