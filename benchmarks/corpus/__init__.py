"""Public model files, how each is built and called, and what may change between two calls of it."""
