/** How a verified kernel reads in a list, and what it is compared with. Knows no VS Code. */
import { digits, sourceWord } from "./kernels";
import { t } from "./l10n";
import type { Variant } from "./review";

export interface VariantRow {
  readonly label: string;
  readonly description: string;
  readonly detail: string;
}

/** Latency first, then what sets it apart and its bottleneck; how it works below. */
export function variantRow(variant: Variant): VariantRow {
  const marks = [
    ...(variant.installed ? [t("accepted")] : []),
    ...(variant.best ? [t("fastest")] : []),
    ...(variant.rejected ? [t("rejected")] : []),
  ];
  // Its first words name what binds; the rest is in the evidence.
  const bound = variant.bottleneck.split(/[:;,]/)[0] ?? "";
  return {
    label: `${digits(variant.us)} µs ${sourceWord(variant.source)}`,
    description: [...marks, bound].filter((words) => words !== "").join(" · "),
    detail: variant.strategy.join(" "),
  };
}

/** What a variant is compared with: the installed one, else the fastest other one. */
export function comparedWith(variant: Variant, all: readonly Variant[]): Variant | undefined {
  const others = all.filter(({ sourceId }) => sourceId !== variant.sourceId);
  return others.find(({ installed }) => installed) ?? others.find(({ best }) => best) ?? others[0];
}
