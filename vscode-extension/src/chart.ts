/** A latency trajectory as a small drawing: verified kernels as points, the best so far as a line. */
import type { Verified } from "./dashboardState";
import { html, NONE, type Markup } from "./markup";

const WIDTH = 240;
const HEIGHT = 64;
const MARGIN = 5;
/** A line at the edge of a range is still seen whole. */
const HEADROOM = 0.08;

/**
 * The drawing says nothing that the words beside it do not, so it is hidden from screen readers. `boundUs` is a
 * dashed line. Nothing is drawn of fewer than two kernels.
 */
export function trajectory(history: readonly Verified[], boundUs: number | undefined): Markup {
  if (history.length < 2) return NONE;
  const { x, y } = scales(history, boundUs);
  const bound = boundUs === undefined ? NONE : html`<line class="bound" x1="0" x2="${WIDTH}" y1="${y(boundUs)}" y2="${y(boundUs)}"/>`;
  return html`<svg class="trajectory" viewBox="0 0 ${WIDTH} ${HEIGHT}" aria-hidden="true" focusable="false">${bound}<path class="best" d="${bestLine(history, x, y)}"/>${history.map(
    ({ attempt, us }) => html`<circle cx="${x(attempt)}" cy="${y(us)}" r="2.2"/>`,
  )}</svg>`;
}

type Scale = (value: number) => string;

function scales(history: readonly Verified[], boundUs: number | undefined): { readonly x: Scale; readonly y: Scale } {
  const latencies = [...history.map(({ us }) => us), ...(boundUs === undefined ? [] : [boundUs])];
  const attempts = history.map(({ attempt }) => attempt);
  const top = Math.max(...latencies) * (1 + HEADROOM);
  const bottom = Math.min(...latencies) * (1 - HEADROOM);
  const first = Math.min(...attempts);
  return {
    x: (attempt) => place((attempt - first) / Math.max(1, Math.max(...attempts) - first), WIDTH),
    y: (us) => place((top - us) / (top - bottom || 1), HEIGHT),
  };
}

function place(share: number, length: number): string {
  return (MARGIN + share * (length - 2 * MARGIN)).toFixed(1);
}

function bestLine(history: readonly Verified[], x: Scale, y: Scale): string {
  let best = Infinity;
  return history
    .map(({ attempt, us }) => {
      best = Math.min(best, us);
      return best === Infinity ? "" : `${x(attempt)} ${y(best)}`;
    })
    .reduce((path, point) => (path === "" ? `M${point}` : `${path}H${point.split(" ")[0] ?? ""}V${point.split(" ")[1] ?? ""}`), "");
}
