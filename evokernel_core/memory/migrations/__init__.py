"""The schema's history: one module per step, named m001_initial and so on, never edited later."""

NAMES = frozenset({"m001_initial", "m002_identity", "m003_rewards", "m004_spending", "m006_estimates"})
"""Every step, so that an up-to-date file is recognised without loading the tools."""
