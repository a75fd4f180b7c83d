/** How fast a processor is asked, and when it is left alone for a while. */

import { Unavailable } from './processor.ts';

export class Pace {
  private readonly interval: number;
  private nextAt = 0;
  private left: { until: number; reason: string } | undefined;
  private free: number;
  private readonly waiting: (() => void)[] = [];

  /** At most so many calls a second leave this process, and so many are under way at once. */
  constructor(callsPerSecond: number, atOnce: number) {
    this.interval = 1000 / callsPerSecond;
    this.free = atOnce;
  }

  /** Waits for the next call's turn, which `done` ends. Throws at once while the processor is left alone. */
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

  /** The call is over; whoever waits longest is next. */
  done(): void {
    const next = this.waiting.shift();
    if (next === undefined) this.free += 1;
    else next();
  }

  private throwIfLeftAlone(): void {
    if (this.left !== undefined && this.left.until > Date.now()) throw new Unavailable(this.left.reason);
  }

  /** Delays every next call, as the processor asked for. */
  slowDown(milliseconds: number): void {
    this.nextAt = Math.max(this.nextAt, Date.now() + milliseconds);
  }

  /** No calls for a while: one document finds out that the processor is down, and the others need not wait for it. */
  leaveAlone(milliseconds: number, reason: string): void {
    this.left = { until: Date.now() + milliseconds, reason };
  }
}
