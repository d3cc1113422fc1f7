"""Coding agents driven by a mock of a model, for benchmarks/agents.py."""
