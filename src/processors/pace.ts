import { atMost } from '#turns';
import { Unavailable } from './processor.ts';

export class Pace {
  private readonly interval: number;
  private nextAt = 0;
  private left: { until: number; reason: string } | undefined;
  private readonly inTurn: ReturnType<typeof atMost>;

  constructor(callsPerSecond: number, atOnce: number) {
    this.interval = 1000 / callsPerSecond;
    this.inTurn = atMost(atOnce);
  }

  /** Makes a call as soon as it may begin. Throws at once if calls are paused. */
  async turn<Result>(call: () => Promise<Result>) {
    this.throwIfLeftAlone();
    return this.inTurn(async () => {
      this.throwIfLeftAlone();
      const now = Date.now();
      const at = Math.max(now, this.nextAt);
      this.nextAt = at + this.interval;
      if (at > now) await new Promise((resolve) => setTimeout(resolve, at - now));
      return call();
    });
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
