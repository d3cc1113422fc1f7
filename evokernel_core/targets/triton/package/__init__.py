"""What a kernel in Triton brings into its package: the host code that launches it, and its own guards."""
