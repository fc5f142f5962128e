// Work that is done in a frame of its own: now and then, less often when it takes long, and out of the way of keys.

/** Own choice: at most this share of the time goes into showing what streams in. */
const BUSY_SHARE = 0.3;
/** Own choice: 20 times a second reads as a stream. */
const MIN_REST_MS = 50;
/** Own choice: whose last key is longer ago than so does not type. */
const TYPING_MS = 500;
/** Own choice: while somebody types, the work waits so long for a key to follow. */
const KEY_WAIT_MS = 120;
/** Own choice: keys put the work off for no longer. */
const MAX_DELAY_MS = 250;

/**
 * Decides when the work is done that `request` asks for.
 *
 * A key that comes while a frame is made waits for it. So the frame that shows a key holds nothing else, and the work
 * is done in the frame after it: then the next key is furthest away.
 */
export class Frames {
  private plannedMs: number | undefined;
  private restUntilMs = 0;
  private keyMs = -Infinity;
  private cancel = (): void => undefined;

  constructor(private readonly work: () => void) {}

  /** Has the work done soon. */
  request(): void {
    if (this.plannedMs !== undefined) {
      return;
    }
    const now = performance.now();
    this.plannedMs = now;
    const isTyping = now - this.keyMs < TYPING_MS;
    this.inTime(Math.max(0, this.restUntilMs - now) + (isTyping ? KEY_WAIT_MS : 0));
  }

  /** A key was pressed: the next frame is left to it. */
  yieldToKey(): void {
    this.keyMs = performance.now();
    const isDue = this.plannedMs !== undefined && this.restUntilMs <= this.keyMs;
    if (isDue && this.keyMs - (this.plannedMs ?? 0) < MAX_DELAY_MS) {
      this.cancel();
      this.atFrame(() => this.atFrame(() => this.run()));
    }
  }

  private inTime(delayMs: number): void {
    if (delayMs === 0) {
      this.atFrame(() => this.run());
      return;
    }
    const timer = setTimeout(() => this.atFrame(() => this.run()), delayMs);
    this.cancel = () => clearTimeout(timer);
  }

  private atFrame(then: () => void): void {
    const frame = requestAnimationFrame(then);
    this.cancel = () => cancelAnimationFrame(frame);
  }

  private run(): void {
    this.plannedMs = undefined;
    const began = performance.now();
    this.work();
    const ended = performance.now();
    this.restUntilMs = ended + Math.max(MIN_REST_MS, (ended - began) * (1 / BUSY_SHARE - 1));
  }
}
