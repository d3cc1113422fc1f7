"""The net of PyTorch's mnist example."""

import torch
from main import Net

PROJECT = "pytorch-examples"
FILE = "mnist/main.py"
OPTIONS = {}
CHANGES = ()


def build(**changes):
    options = {**OPTIONS, **changes}
    return Net(**options)


def inputs(batch=2, size=16):
    return (torch.randn(batch, 1, 28, 28),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
