"""PyTorch's own result for a task: random inputs, and results in wider types."""
