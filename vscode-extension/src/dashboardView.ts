/// <reference lib="dom" />
/** What runs in the dashboard's webview: shows states as they come, and passes on what a person presses. */
import { page, type Asked } from "./dashboardPage";
import type { DashboardState } from "./dashboardState";
import { inEnglish, translateWith } from "./l10n";

/** What the extension sends; `status` alone comes far more often than a whole state. */
export type Message =
  | { readonly type: "state"; readonly state: DashboardState }
  | { readonly type: "status"; readonly status: DashboardState["status"] }
  | { readonly type: "problem"; readonly problem: string };

/** What the webview sends: once it listens, and for each button. */
export type Sent = { readonly type: "listening" } | ({ readonly type: "asked" } & Asked);

interface Kept {
  readonly state: DashboardState;
}

declare function acquireVsCodeApi(): {
  postMessage(message: Sent): void;
  getState(): Kept | undefined;
  setState(kept: Kept): void;
};

const editor = acquireVsCodeApi();
const root = document.getElementById("page") ?? document.body;
const news = document.getElementById("news") ?? document.body;
const words = JSON.parse(document.body.dataset["words"] ?? "{}") as Readonly<Record<string, string>>;

let state = editor.getState()?.state;
let shown = "";

translateWith((message, ...args) => inEnglish(words[message] ?? message, ...args));
show("");
window.addEventListener("message", ({ data }: MessageEvent<Message>) => {
  take(data);
});
root.addEventListener("click", ({ target }) => {
  const pressed = target instanceof Element ? target.closest<HTMLElement>("[data-action]") : null;
  if (pressed !== null) ask(pressed.dataset);
});
editor.postMessage({ type: "listening" });

function take(message: Message): void {
  if (message.type === "problem") {
    show(message.problem);
    return;
  }
  if (message.type === "state") state = message.state;
  else if (state !== undefined) state = { ...state, status: message.status };
  if (state !== undefined) editor.setState({ state });
  show("");
}

function ask(data: DOMStringMap): void {
  const argument = JSON.parse(data["argument"] ?? "{}") as Asked["argument"];
  editor.postMessage({ type: "asked", action: data["action"] as Asked["action"], argument });
}

/** The page as it is now, with the focus, the opened parts and the place where they were. */
function show(problem: string): void {
  const next = page(state, problem, document.documentElement.lang).html;
  if (next === shown) return;
  const [focused, opened, top] = [focusedPlace(), openedKeys(), window.scrollY];
  root.innerHTML = next;
  shown = next;
  for (const part of root.querySelectorAll<HTMLDetailsElement>("details[data-key]"))
    part.open = opened.has(part.dataset["key"] ?? "");
  focused();
  window.scrollTo(0, top);
  const said = problem === "" ? (state?.status.text ?? "") : problem;
  if (news.textContent !== said) news.textContent = said;
}

/** Puts the focus back: where its button is gone, as that of a job that has ended, on the part that it was in. */
function focusedPlace(): () => void {
  const focused = document.activeElement;
  const holder = focused?.closest<HTMLElement>("[data-key]");
  const [key, part] = [holder?.dataset["key"], focused?.closest("section")?.querySelector("h2")?.id];
  if (focused === null || !root.contains(focused)) return () => undefined;
  return () => {
    const same = [...root.querySelectorAll<HTMLElement>("[data-key]")].find((item) => item.dataset["key"] === key);
    const again = same instanceof HTMLDetailsElement ? same.querySelector("summary") : same;
    (again ?? (part === undefined ? null : document.getElementById(part)))?.focus({ preventScroll: true });
  };
}

function openedKeys(): ReadonlySet<string> {
  return new Set([...root.querySelectorAll<HTMLElement>("details[open]")].map((part) => part.dataset["key"] ?? ""));
}
