/** What this editor adds to the server's commands, wherever they were started. */
import { askReason, REJECT, REVIEW, type Decisions } from "./decisions";
import { GENERATE, GENERATE_IN } from "./generate";
import type { Commands } from "./middleware";
import { OBSERVE, observeAnswer, offerInTerminal } from "./observe";
import { givenPlace } from "./places";
import type { Place } from "./review";
import { keepTarget } from "./target";
import { showTimeline, TIMELINE } from "./timeline";
import { VARIANTS, type Variants } from "./variants";
import { showReasons, WHY_NOT } from "./whyNot";

export function commandsWith(decisions: Decisions, variants: Variants): Commands {
  return {
    before: async (command, given) => {
      const [first] = given;
      if (command !== REJECT || typeof first !== "object" || first === null || "reason" in first) return given;
      const reason = await askReason();
      return reason === undefined ? undefined : [{ ...first, reason }];
    },
    after: (command, given, answer) => {
      void show(command, given[0], answer);
    },
  };

  async function tellReady(place: Place, answer: unknown): Promise<void> {
    const { status, message } = (answer ?? {}) as { readonly status?: unknown; readonly message?: unknown };
    if (status === "ready" && typeof message === "string") await decisions.ready(place, message);
  }

  async function show(command: string, given: unknown, answer: unknown): Promise<void> {
    const observe = command === OBSERVE ? observeAnswer(answer) : undefined;
    const place = givenPlace(given);
    const uri = (given as { readonly uri?: unknown } | null | undefined)?.uri;
    if (observe !== undefined) offerInTerminal(observe);
    if (command === GENERATE && place !== undefined) await tellReady(place, answer);
    if (command === GENERATE_IN) {
      await keepTarget(answer);
      const now = givenPlace({ uri, ...(answer as object | null) });
      if (now !== undefined) await tellReady(now, answer);
    }
    if (command === REVIEW) await decisions.show(answer);
    if (command === VARIANTS && place !== undefined) variants.show(place, answer);
    if (command === WHY_NOT && typeof uri === "string") await showReasons(uri, answer);
    if (command === TIMELINE) await showTimeline(answer);
  }
}
