"""The experts' gate of fairscale."""

import torch
from fairscale.nn.moe.top2gate import Top2Gate

PROJECT = "fairscale"
FILE = "fairscale/nn/moe/top2gate.py"
OPTIONS = {"model_dim": 32, "num_experts": 4}
CHANGES = ()


def build(**changes):
    options = {**OPTIONS, **changes}
    return Top2Gate(**options)


def inputs(batch=2, size=16):
    return (torch.randn(batch * size, 32),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
