/** States of a job in words. */
import { t } from "./l10n";

export function jobState(state: string): string {
  const words: Readonly<Record<string, string>> = {
    queued: t("queued"),
    running: t("running"),
    waiting: t("waiting until it can be verified"),
    done: t("done"),
    failed: t("failed"),
    cancelled: t("cancelled"),
  };
  return words[state] ?? state;
}
