"""How far modelled latencies are from measured ones."""

from __future__ import annotations

MODEL_ERROR = 0.160
"""Median absolute error over published measurements of the series that no constant was fitted to, from
kernels that were executed unchanged; `benchmarks/latency_model.py` prints it and docs/twin.md lists it. A
modelled gain that is no greater than this may be none on a chip."""
