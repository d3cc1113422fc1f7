"""From a task to kernels that somebody has to write, for any target."""
