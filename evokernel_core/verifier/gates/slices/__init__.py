"""Which parts of a task's tensors depend on each other: what full sizes are sampled by."""
