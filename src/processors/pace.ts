/** The pace of calls to a processor, and pauses after failures. */

import { Unavailable } from './processor.ts';

export class Pace {
  private readonly interval: number;
  private nextAt = 0;
  private left: { until: number; reason: string } | undefined;
  private free: number;
  private readonly waiting: (() => void)[] = [];

  /** The most calls per second that leave this process, and the most that are in progress at once. */
  constructor(callsPerSecond: number, atOnce: number) {
    this.interval = 1000 / callsPerSecond;
    this.free = atOnce;
  }

  /** Waits for a call's turn. The call ends with `done`. Throws at once during a pause. */
  async turn(): Promise<void> {
    this.throwIfLeftAlone();
    if (this.free === 0) await new Promise<void>((go) => this.waiting.push(go));
    else this.free -= 1;
    try {
      this.throwIfLeftAlone();
    } catch (error) {
      this.done();
      throw error;
    }
    const now = Date.now();
    const at = Math.max(now, this.nextAt);
    this.nextAt = at + this.interval;
    if (at > now) await new Promise((resolve) => setTimeout(resolve, at - now));
  }

  /** Ends a call. The one that has waited longest is next. */
  done(): void {
    const next = this.waiting.shift();
    if (next === undefined) this.free += 1;
    else next();
  }

  private throwIfLeftAlone(): void {
    if (this.left !== undefined && this.left.until > Date.now()) throw new Unavailable(this.left.reason);
  }

  /** Delays all further calls, as the processor requested. */
  slowDown(milliseconds: number): void {
    this.nextAt = Math.max(this.nextAt, Date.now() + milliseconds);
  }

  /**
   * Makes no calls for a while. One document has found that the processor is down, and the others need not wait for it.
   */
  leaveAlone(milliseconds: number, reason: string): void {
    this.left = { until: Date.now() + milliseconds, reason };
  }
}
