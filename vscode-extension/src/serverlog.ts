/** The last lines that the server wrote to its standard error, and the traceback among them. */

const KEPT_LINES = 400;
const LONGEST_REASON = 200;
const HEAD = "Traceback (most recent call last):";

export class ServerLog {
  private readonly lines: string[] = [];

  add(line: string): void {
    this.lines.push(line);
    if (this.lines.length > KEPT_LINES) this.lines.shift();
  }

  tail(count: number): string {
    return this.lines.slice(-count).join("\n");
  }

  lastTraceback(): string {
    return lastTraceback(this.lines);
  }

  /** Why the server ended, as far as its last line tells. */
  reason(): string {
    const line = this.lines.findLast((item) => item.trim() !== "") ?? "";
    return line.trim().slice(0, LONGEST_REASON);
  }
}

/** From the last `Traceback` line to the exception's own line; empty when there is none. */
export function lastTraceback(lines: readonly string[]): string {
  const start = lines.findLastIndex((line) => line.trim().startsWith(HEAD));
  if (start < 0) return "";
  const after = lines.slice(start + 1);
  const end = after.findIndex((line) => line !== "" && !/^\s/.test(line));
  return [lines[start], ...(end < 0 ? after : after.slice(0, end + 1))].join("\n");
}
