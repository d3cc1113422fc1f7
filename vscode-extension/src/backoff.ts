/** How long to wait before a crashed server is started again: longer each time, never for ever. */

const FIRST_MS = 1_000;
const LONGEST_MS = 60_000;
/** A server that ran this long was healthy: the next crash starts a new count. */
const HEALTHY_MS = 180_000;

export class Backoff {
  private crashes = 0;
  private startedAt = 0;

  get count(): number {
    return this.crashes;
  }

  started(now: number): void {
    this.startedAt = now;
  }

  /** Counts a crash and answers the wait in milliseconds. */
  crashed(now: number): number {
    if (this.startedAt > 0 && now - this.startedAt >= HEALTHY_MS) this.crashes = 0;
    this.startedAt = 0;
    this.crashes += 1;
    return Math.min(LONGEST_MS, FIRST_MS * 2 ** (this.crashes - 1));
  }

  reset(): void {
    this.crashes = 0;
    this.startedAt = 0;
  }
}
