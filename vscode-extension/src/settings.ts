/** VS Code's settings, under the names that the server gives them. */

/** Setting below `evokernel.` on the left, the server's name for it on the right. */
export const SERVER_NAMES: Readonly<Record<string, string>> = {
  interpreter: "interpreter",
  target: "target",
  chip: "chip",
  budget: "budget",
  proposer: "proposer",
  policy: "policy",
  retrieval: "retrieval",
  refineInBackground: "refineInBackground",
  programs: "programs",
  half: "half",
  leastGain: "leastGain",
  editAtOnce: "editAtOnce",
  "verifier.url": "verifierUrl",
  "verifier.caBundle": "verifierCaBundle",
  "verifier.candidatesAtOnce": "candidatesAtOnce",
  "model.baseUrl": "modelUrl",
  "model.name": "model",
  "model.protocol": "modelProtocol",
  "model.effort": "effort",
  "model.temperature": "temperature",
  "model.samples": "samples",
  "model.answerTokens": "answerTokens",
  "model.idleTimeout": "idleTimeoutS",
  "model.totalTimeout": "totalTimeoutS",
  "model.tokenBudget": "tokenBudget",
  "model.dayTokenBudget": "dayTokenBudget",
  "model.moneyBudget": "moneyBudget",
  "model.dayMoneyBudget": "dayMoneyBudget",
  "model.inputPrice": "inputPrice",
  "model.outputPrice": "outputPrice",
  "model.caBundle": "caBundle",
  "inlayHints.enabled": "inlayHints",
  "codeLens.enabled": "codeLens",
  "codeLens.ready": "readyLens",
  "diagnostics.enabled": "diagnostics",
};

/** Settings that only this extension reads. */
export const OWN_SETTINGS = ["serverCommand", "trace.server"];

export type ServerSettings = Readonly<Record<string, unknown>>;

/** `interpreter` is used where the setting of that name is empty. */
export function serverSettings(get: (key: string) => unknown, interpreter: string | undefined): ServerSettings {
  const settings = Object.fromEntries(Object.entries(SERVER_NAMES).map(([key, name]) => [name, get(key)]));
  if (settings["interpreter"] === "" && interpreter !== undefined) settings["interpreter"] = interpreter;
  return settings;
}

/** The server leaves a setting as it was when it is told an empty one, so clearing one takes a restart. */
export function needsRestart(before: ServerSettings, after: ServerSettings): boolean {
  return Object.entries(before).some(([name, value]) => !isEmpty(value) && isEmpty(after[name]));
}

function isEmpty(value: unknown): boolean {
  return value === "" || value === null;
}
