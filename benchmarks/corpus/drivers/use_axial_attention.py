"""The axial attention of axial-attention."""

import torch
from axial_attention.axial_attention import AxialAttention

PROJECT = "axial_attention"
FILE = "axial_attention/axial_attention.py"
OPTIONS = {"dim": 32, "dim_index": 1, "heads": 4, "num_dimensions": 2}
CHANGES = ({"sum_axial_out": False}, {"heads": 2})


def build(**changes):
    options = {**OPTIONS, **changes}
    return AxialAttention(**options)


def inputs(batch=2, size=16):
    return (torch.randn(batch, 32, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
