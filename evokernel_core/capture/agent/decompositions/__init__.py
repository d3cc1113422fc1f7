"""Composite operations in terms that kernels compute."""
