/** Runs something once behind a burst of reasons for it. */
export class Soon {
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly run: () => void,
    private readonly pauseMs: number,
  ) {}

  readonly ask = (): void => {
    clearTimeout(this.timer);
    this.timer = setTimeout(this.run, this.pauseMs);
  };

  dispose(): void {
    clearTimeout(this.timer);
  }
}
