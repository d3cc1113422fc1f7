/** How the server is installed; the package is on no index yet. */
export const INSTALL =
  "Install it from a checkout of EvoKernel into the environment that runs your models " +
  "(pip install /path/to/evokernel), or set evokernel.serverCommand.";
