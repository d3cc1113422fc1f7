/** What a person decides about a kernel: accept it, some of it, or turn it down, for now or for good. */
import * as vscode from "vscode";
import { readState, type DashboardOffer } from "./dashboardState";
import { GENERATE } from "./generate";
import { latencyWords } from "./kernels";
import { t } from "./l10n";
import { givenPlace, goTo, placesAt, pythonEditor } from "./places";
import { placeOf, readReview, withoutOverlap, type Place, type Review } from "./review";
import type { Reviews } from "./reviews";

export type Execute = (command: string, given: object) => Promise<unknown>;

export const REVIEW = "evokernel.review";
export const REJECT = "evokernel.reject";
const APPLY = "evokernel.apply";
const REVERT = "evokernel.revert";
const NEVER = "evokernel.never";
/** Actions of the server that name a kernel that waits, or any place that may have one. */
const WAITING = [REVIEW];
export const ANY_KERNEL = [REVIEW, REVERT, GENERATE];

interface Choice extends vscode.QuickPickItem {
  readonly regionId: string;
}

export class Decisions {
  constructor(
    private readonly reviews: Reviews,
    private readonly execute: Execute,
  ) {}

  /** The kernel of a row, of the line of the cursor, or one that the person picks among those that wait. */
  async review(given?: unknown): Promise<void> {
    const place = givenPlace(given) ?? (await this.placeAtCursor([REVIEW, REVERT])) ?? (await this.pickWaiting());
    if (place === undefined) return;
    await this.show(await this.execute(REVIEW, place));
  }

  /** Shows what the server answered to `evokernel.review`, from wherever it was asked. */
  async show(answer: unknown): Promise<void> {
    const review = readReview(answer);
    if (review !== undefined) await this.reviews.show(review);
  }

  /** Something changed: reviews that are open follow it. */
  async follow(): Promise<void> {
    await this.reviews.follow((review) => this.execute(REVIEW, { ...placeOf(review), sourceId: review.kernel.sourceId, again: true }));
  }

  /** A kernel that was asked for is there: the person is told once, and nothing is edited. */
  async ready(place: Place, message: string): Promise<void> {
    const [review, accept] = [t("Review"), t("Accept")];
    const chosen = await vscode.window.showInformationMessage(`EvoKernel: ${message}`, review, accept);
    if (chosen === review) await this.review(place);
    if (chosen === accept) await this.accept(place);
  }

  async accept(given?: unknown): Promise<void> {
    const place = await this.placeFor(given);
    if (place === undefined) return;
    const review = this.reviews.current;
    // What was seen is what is accepted, also where a faster kernel has come meanwhile.
    const seen = review !== undefined && isPlaceOf(review, place) ? { sourceId: review.kernel.sourceId } : {};
    const answer = await this.execute(APPLY, { ...place, ...seen });
    await this.applied(answer, place, review);
  }

  async acceptSome(given?: unknown): Promise<void> {
    const review = this.reviews.current;
    const uri = givenPlace(given)?.uri ?? review?.uri ?? pythonEditor()?.document.uri.toString();
    if (uri === undefined) return;
    const waiting = (await this.waiting()).filter((offer) => offer.ready && offer.uri === uri);
    const choices = choicesAmong(review, waiting);
    if (choices.length === 0) {
      void vscode.window.showInformationMessage(t("EvoKernel: no kernel is pending in this file."));
      return;
    }
    const chosen = await chooseSome(choices, review?.regionId ?? "", review?.parts.map(({ regionId }) => regionId) ?? []);
    if (chosen.length === 0) return;
    // Who takes parts of what was reviewed has decided about the whole.
    const whole = review === undefined ? {} : { regionId: review.regionId };
    await this.applied(await this.execute(APPLY, { uri, ...whole, regionIds: chosen }), { uri }, review, chosen.length);
  }

  async reject(given?: unknown): Promise<void> {
    const place = await this.placeFor(given);
    if (place === undefined) return;
    const reason = await askReason();
    if (reason === undefined) return;
    await this.ended(await this.execute(REJECT, { ...place, reason }), place);
  }

  async snooze(given?: unknown): Promise<void> {
    const place = await this.placeFor(given);
    if (place !== undefined) await this.ended(await this.execute("evokernel.snooze", place), place);
  }

  async neverHere(given?: unknown): Promise<void> {
    const place = await this.placeFor(given, [NEVER]);
    if (place === undefined) return;
    await this.ended(await this.execute(NEVER, place), place);
  }

  async offerAgain(): Promise<void> {
    const editor = pythonEditor();
    if (editor === undefined) return;
    tell(await this.execute("evokernel.offerAgain", { uri: editor.document.uri.toString() }));
  }

  /** Takes an accepted kernel out, or refines it further. */
  async forKernel(command: string, given?: unknown): Promise<void> {
    const none = t("EvoKernel: no generated kernel is called on this line.");
    const place = givenPlace(given) ?? (await this.placeAtCursor([command], none));
    if (place !== undefined) tell(await this.execute(command, place));
  }

  async waiting(): Promise<readonly DashboardOffer[]> {
    return readState(await this.execute("evokernel.dashboard", {}))?.offers ?? [];
  }

  /** What was clicked, the review in front, or the kernel at the cursor. */
  async placeFor(given?: unknown, commands = WAITING): Promise<Place | undefined> {
    const review = this.reviews.current;
    return givenPlace(given) ?? (review === undefined ? this.placeAtCursor(commands, noneFor(commands)) : placeOf(review));
  }

  /** `none` is what a person is told where there is no kernel; a list that was left needs no words. */
  private async placeAtCursor(commands: readonly string[], none?: string): Promise<Place | undefined> {
    const editor = pythonEditor();
    const places = editor === undefined ? [] : await placesAt(editor, commands);
    if (places.length === 0 && none !== undefined) void vscode.window.showInformationMessage(none);
    if (places.length < 2) return places[0]?.place;
    const items = places.map(({ title, place }) => ({ label: title, place }));
    return (await vscode.window.showQuickPick(items, { placeHolder: t("Which kernel?") }))?.place;
  }

  private async pickWaiting(): Promise<Place | undefined> {
    const offers = await this.waiting();
    if (offers.length === 0) {
      void vscode.window.showInformationMessage(t("EvoKernel: no kernel waits for a review."));
      return undefined;
    }
    const items = offers.map((offer) => ({ label: offer.name, detail: offer.words, offer }));
    const chosen = await vscode.window.showQuickPick(items, { placeHolder: t("Which kernel?"), matchOnDetail: true });
    return chosen && { uri: chosen.offer.uri, regionId: chosen.offer.regionId };
  }

  /** The status bar has room for what one kernel gains; of several it says how many. */
  private async applied(answer: unknown, place: Place, review: Review | undefined, count = 1): Promise<void> {
    if (statusOf(answer) !== "applied") return;
    tell(count === 1 ? answer : { message: t("{0} kernels are accepted; one undo takes them back.", count) });
    if (review !== undefined) await this.reviews.close(placeOf(review));
    await this.reviews.close(place);
    if (review !== undefined) await goTo(review.uri, lineOfCall(review));
  }

  /** Says so where it came to that; the server has said why where it did not. */
  private async ended(answer: unknown, place: Place): Promise<void> {
    if (!["rejected", "snoozed", "never"].includes(statusOf(answer))) return;
    tell(answer);
    await this.reviews.close(place);
  }
}

function noneFor(commands: readonly string[]): string {
  if (commands === WAITING) return t("EvoKernel: no kernel is pending on this line.");
  return t("EvoKernel: no kernel is known for this line; put the cursor on a line with a ⚡ hint.");
}

/** 0-based; the line of the code where a kernel is called already, or was put in place in part. */
function lineOfCall({ after, name, line }: Review): number {
  const call = after.split("\n").findIndex((text, number) => number >= line && text.includes(`${name}.run(`));
  return call < 0 ? line : call;
}

function isPlaceOf(review: Review, { uri, regionId, name }: Place): boolean {
  return review.uri === uri && (review.regionId === regionId || review.name === name);
}

function statusOf(answer: unknown): string {
  const status = (answer as { readonly status?: unknown } | null | undefined)?.status;
  return typeof status === "string" ? status : "";
}

function tell(answer: unknown): void {
  const message = (answer as { readonly message?: unknown } | null | undefined)?.message;
  if (statusOf(answer) !== "refused" && typeof message === "string" && message !== "") {
    void vscode.window.setStatusBarMessage(`EvoKernel: ${message}`, 8_000);
  }
}

/** The kernel under review, the parts inside it, and other kernels that are ready in the same file. */
function choicesAmong(review: Review | undefined, waiting: readonly DashboardOffer[]): Choice[] {
  const known = new Set([review?.regionId, ...(review?.parts ?? []).map(({ regionId }) => regionId)]);
  return [
    ...(review === undefined ? [] : [{ label: review.name, description: latencyWords(review.kernel), regionId: review.regionId }]),
    ...(review?.parts ?? []).map(({ regionId, line, words }) => ({
      label: t("Only line {0}", line + 1),
      detail: words,
      regionId,
    })),
    ...waiting
      .filter(({ regionId }) => !known.has(regionId))
      .map(({ regionId, name, newUs, source }) => ({ label: name, description: latencyWords({ us: newUs, source }), regionId })),
  ];
}

/** Check boxes; a whole kernel and its own parts exclude each other. Empty where the person gave up. */
function chooseSome(choices: readonly Choice[], whole: string, parts: readonly string[]): Promise<string[]> {
  const picker = vscode.window.createQuickPick<Choice>();
  picker.title = t("Accept which kernels?");
  picker.placeholder = t("They are accepted with one edit, which one undo takes back");
  picker.canSelectMany = true;
  picker.matchOnDetail = true;
  picker.items = [...choices];
  let selected: string[] = [];
  picker.onDidChangeSelection((items) => {
    const now = items.map(({ regionId }) => regionId);
    const others = now.filter((id) => id !== whole && !parts.includes(id));
    const inside = now.filter((id) => id === whole || parts.includes(id));
    const kept = [...withoutOverlap(whole, selected, inside), ...others];
    selected = kept;
    if (kept.length !== now.length) picker.selectedItems = choices.filter(({ regionId }) => kept.includes(regionId));
  });
  return new Promise((resolve) => {
    picker.onDidAccept(() => {
      resolve(selected);
      picker.hide();
    });
    picker.onDidHide(() => {
      resolve([]);
      picker.dispose();
    });
    picker.show();
  });
}

/** The server's own words for reasons first: the next kernel keeps to them. Undefined: not rejected after all. */
export async function askReason(): Promise<string | undefined> {
  const reasons = [
    { label: t("Slower than wanted"), reason: "slower than wanted" },
    { label: t("Hard to read"), reason: "hard to read" },
    { label: t("Precision"), reason: "precision" },
    { label: t("Another reason…"), reason: undefined },
  ];
  const title = t("Reject: what is wrong with this kernel?");
  const placeHolder = t("The next kernel keeps to your answer");
  const chosen = await vscode.window.showQuickPick(reasons, { title, placeHolder });
  if (chosen === undefined || chosen.reason !== undefined) return chosen?.reason;
  const words = await vscode.window.showInputBox({ title, prompt: t("In your own words; Enter leaves it open") });
  return words?.trim() === "" ? "other" : words?.trim();
}
