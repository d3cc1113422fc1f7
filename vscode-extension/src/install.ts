/** How the server is installed; the package is on no index yet. */
import { t } from "./l10n";

export function install(): string {
  return t(
    "Install it from a checkout of EvoKernel into the environment that runs your models (pip install /path/to/evokernel), or set evokernel.serverCommand.",
  );
}
