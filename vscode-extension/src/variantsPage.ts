/** The table of a region's verified kernels: latency, attempt, and in what its schedule differs. */
import { commandPage, escape, link } from "./commandPage";
import { latencyWords } from "./kernels";
import { t } from "./l10n";
import type { Place, Variant } from "./review";

export const COMPARE_VARIANT = "evokernel.compareVariant";
export const REVIEW_VARIANT = "evokernel.reviewVariant";

/** What a link of the table is about: `other` is the kernel it is compared with. */
export interface VariantPlace extends Place {
  readonly sourceId: string;
  readonly other?: string;
}

export function variantsPage(place: Place, all: readonly Variant[], nonce: string, language: string): string {
  const title = t("Verified kernels of this code");
  const compared = all.some(({ installed }) => installed) ? t("Differences are from the accepted kernel.") : t("Differences are from the fastest kernel.");
  const heads = [t("Latency"), t("Attempt"), t("What differs"), t("Schedule"), t("State"), t("Look closer")];
  const body = `<h1>${escape(title)}</h1>
<p class="quiet">${escape(compared)}</p>
<table class="ruled">
<tr>${heads.map((head) => `<th scope="col">${escape(head)}</th>`).join("")}</tr>
${all.map((variant) => row(place, variant, all)).join("\n")}
</table>`;
  return commandPage(title, body, nonce, language);
}

function row(place: Place, variant: Variant, all: readonly Variant[]): string {
  const { attempt, changes, sourceId, installed } = variant;
  const fields = changes.map(({ name, before, after }) => escape(`${name} ${before} → ${after}`));
  const other = comparedWith(variant, all);
  const links = [
    ...(other === undefined ? [] : [link(COMPARE_VARIANT, t("Compare"), "", { ...place, sourceId, other: other.sourceId })]),
    ...(installed ? [] : [link(REVIEW_VARIANT, t("Review"), "", { ...place, sourceId })]),
  ];
  return `<tr><th scope="row" class="number">${escape(latencyWords(variant))}</th>
<td class="number">${attempt > 0 ? String(attempt) : ""}</td><td>${escape(difference(variant, all))}</td><td>${fields.join("<br>")}</td>
<td>${escape(states(variant).join(", "))}</td><td class="links">${links.join("")}</td></tr>`;
}

/** Of several fields the first one, which is the most telling; the schedule's own fields stand beside it. */
function difference({ changes, installed, best }: Variant, all: readonly Variant[]): string {
  const [first] = changes;
  if (first !== undefined) return first.words;
  const isReference = installed || (best && !all.some((variant) => variant.installed));
  return isReference ? "" : t("same schedule");
}

function states({ installed, best, rejected }: Variant): string[] {
  return [...(installed ? [t("accepted")] : []), ...(best ? [t("fastest")] : []), ...(rejected ? [t("rejected")] : [])];
}

/** What a variant is compared with: the installed one, else the fastest other one. */
export function comparedWith(variant: Variant, all: readonly Variant[]): Variant | undefined {
  const others = all.filter(({ sourceId }) => sourceId !== variant.sourceId);
  return others.find(({ installed }) => installed) ?? others.find(({ best }) => best) ?? others[0];
}
