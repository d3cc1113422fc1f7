"""Runs the user's file: parsed, instrumented, without devices and without allocating its tensors."""
