import { Unavailable } from './processor.ts';

export class Pace {
  private readonly interval: number;
  private nextAt = 0;
  private left: { until: number; reason: string } | undefined;
  private free: number;
  private readonly waiting: (() => void)[] = [];

  constructor(callsPerSecond: number, atOnce: number) {
    this.interval = 1000 / callsPerSecond;
    this.free = atOnce;
  }

  /** Waits until a call may begin. The call ends when the caller calls `done`. Throws at once if calls are paused. */
  async turn() {
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

  /** Ends a call. The call that has waited longest begins first. */
  done() {
    const next = this.waiting.shift();
    if (next === undefined) this.free += 1;
    else next();
  }

  private throwIfLeftAlone() {
    if (this.left !== undefined && this.left.until > Date.now()) throw new Unavailable(this.left.reason);
  }

  slowDown(milliseconds: number) {
    this.nextAt = Math.max(this.nextAt, Date.now() + milliseconds);
  }

  /** Pauses all calls after a failure of the processor, so that the next documents fail at once instead of waiting. */
  leaveAlone(milliseconds: number, reason: string) {
    this.left = { until: Date.now() + milliseconds, reason };
  }
}
