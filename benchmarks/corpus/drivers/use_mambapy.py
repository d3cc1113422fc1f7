"""Mamba of mambapy, with its parallel scan."""

import torch
from mambapy.mamba import Mamba, MambaConfig

PROJECT = "mambapy"
FILE = "mambapy/mamba.py"
OPTIONS = {"d_model": 32, "n_layers": 2, "d_state": 8}
CHANGES = ({"pscan": False}, {"rms_norm_eps": 0.3}, {"inner_layernorms": True}, {"bias": True})


def build(**changes):
    options = {**OPTIONS, **changes}
    return Mamba(MambaConfig(**options))


def inputs(batch=2, size=16):
    return (torch.randn(batch, size, 32),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
