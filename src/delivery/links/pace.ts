/** How fast a processor is asked, and when it is left alone for a while. */

/** The processor can't be asked at present; the same is tried again later. */
export class Unavailable extends Error {}

export class Pace {
  private readonly interval: number;
  private nextAt = 0;
  private left: { until: number; reason: string } | undefined;

  /** At most so many calls a second leave this process. */
  constructor(callsPerSecond: number) {
    this.interval = 1000 / callsPerSecond;
  }

  /** Waits for the next call's turn. Throws at once while the processor is left alone. */
  async turn(): Promise<void> {
    const now = Date.now();
    if (this.left !== undefined && this.left.until > now) throw new Unavailable(this.left.reason);
    const at = Math.max(now, this.nextAt);
    this.nextAt = at + this.interval;
    if (at > now) await new Promise((resolve) => setTimeout(resolve, at - now));
  }

  /** Nobody's next call before that, as the processor asked for. */
  slowDown(milliseconds: number): void {
    this.nextAt = Math.max(this.nextAt, Date.now() + milliseconds);
  }

  /** No calls for a while: one document finds out that the processor is down, and the others need not wait for it. */
  leaveAlone(milliseconds: number, reason: string): void {
    this.left = { until: Date.now() + milliseconds, reason };
  }
}
