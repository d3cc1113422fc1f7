/** Reads answers of the server as what they should be: what is missing or of another kind is nothing. */

export type Data = Readonly<Record<string, unknown>>;

export function object(value: unknown): Data | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Data) : undefined;
}

/** An object that has nothing where there is none. */
export function record(value: unknown): Data {
  return object(value) ?? {};
}

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function objects(value: unknown): Data[] {
  return list(value)
    .map(object)
    .filter((item) => item !== undefined);
}

export function texts(value: unknown): string[] {
  return list(value).filter((item) => typeof item === "string");
}

export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function number(value: unknown): number {
  return figure(value) ?? 0;
}

/** Undefined for what is no number. */
export function figure(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}
