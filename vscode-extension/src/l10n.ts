/**
 * Words for a person, in the editor's language. Modules that know no VS Code say them through here too; the
 * extension puts VS Code's own translation behind it when it is activated.
 */

export type Argument = string | number;
type Translate = (message: string, ...args: Argument[]) => string;

let translate: Translate = inEnglish;

/** `message` is English, with `{0}`, `{1}`, … for `args`; its translation is in l10n/bundle.l10n.*.json. */
export function t(message: string, ...args: Argument[]): string {
  return translate(message, ...args);
}

export function translateWith(other: Translate): void {
  translate = other;
}

export function inEnglish(message: string, ...args: Argument[]): string {
  return message.replace(/\{(\d+)\}/g, (hole, index) => String(args[Number(index)] ?? hole));
}
