"""Nystromformer of nystrom-attention."""

import torch
from nystrom_attention.nystrom_attention import Nystromformer

PROJECT = "nystrom_attention"
FILE = "nystrom_attention/nystrom_attention.py"
OPTIONS = {"dim": 64, "depth": 2, "heads": 4, "dim_head": 16, "num_landmarks": 8}
CHANGES = ({"attn_dropout": 0.4}, {"pinv_iterations": 3}, {"attn_values_residual": False})


def build(**changes):
    options = {**OPTIONS, **changes}
    return Nystromformer(**options)


def inputs(batch=2, size=16):
    return (torch.randn(batch, size, 64),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
