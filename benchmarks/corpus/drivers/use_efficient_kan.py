"""KAN of efficient-kan."""

import torch
from efficient_kan.kan import KAN

PROJECT = "efficient-kan"
FILE = "src/efficient_kan/kan.py"
OPTIONS = {"layers_hidden": [16, 32, 8]}
CHANGES = ({"grid_size": 3}, {"spline_order": 2}, {"scale_base": 0.5})


def build(**changes):
    options = {**OPTIONS, **changes}
    return KAN(**options)


def inputs(batch=2, size=16):
    return (torch.randn(batch * size, 16),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
