/** HTML from templates in which every value is text, unless it was made by a template itself. */

export class Markup {
  constructor(readonly html: string) {}
}

type Value = string | number | Markup | readonly Markup[];

/** Values are escaped for text and for attributes in double quotes. */
export function html(parts: TemplateStringsArray, ...values: Value[]): Markup {
  return new Markup(parts.map((part, n) => part + (n < values.length ? filled(values[n] ?? "") : "")).join(""));
}

export const NONE = new Markup("");

function filled(value: Value): string {
  if (value instanceof Markup) return value.html;
  if (typeof value === "object") return value.map(({ html: text }) => text).join("");
  return escaped(String(value));
}

const SIGNS: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => SIGNS[sign] ?? "");
}
