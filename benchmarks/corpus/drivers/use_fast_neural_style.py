"""The net of PyTorch's fast_neural_style example."""

import torch
from neural_style.transformer_net import TransformerNet

PROJECT = "pytorch-examples"
FILE = "fast_neural_style/neural_style/transformer_net.py"
OPTIONS = {}
CHANGES = ()


def build(**changes):
    options = {**OPTIONS, **changes}
    return TransformerNet(**options)


def inputs(batch=2, size=16):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
