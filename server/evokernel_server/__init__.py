"""EvoKernel's language server."""
