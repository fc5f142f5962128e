// Work that is done once a frame, and less often when it takes long, so that keys are always answered in between.

/** Own choice: at most this share of the time goes into showing what streams in. */
const BUSY_SHARE = 0.3;
/** Own choice: 25 times a second reads as a stream. */
const MIN_REST_MS = 40;

export class Frames {
  private isPlanned = false;
  private restUntilMs = 0;

  constructor(private readonly work: () => void) {}

  /** Has the work done at the next frame that is not to be left to other things. */
  request(): void {
    if (this.isPlanned) {
      return;
    }
    this.isPlanned = true;
    const restMs = this.restUntilMs - performance.now();
    if (restMs > 0) {
      setTimeout(() => requestAnimationFrame(() => this.run()), restMs);
    } else {
      requestAnimationFrame(() => this.run());
    }
  }

  private run(): void {
    this.isPlanned = false;
    const began = performance.now();
    this.work();
    const ended = performance.now();
    this.restUntilMs = ended + Math.max(MIN_REST_MS, (ended - began) * (1 / BUSY_SHARE - 1));
  }
}
