"""What the file's functions are called with, and the tensors and state that a call can reach."""
