"""ShuffleNetV2 of pytorch-cifar."""

import torch
from models.shufflenetv2 import ShuffleNetV2

PROJECT = "pytorch-cifar"
FILE = "models/shufflenetv2.py"
OPTIONS = {"net_size": 0.5}
CHANGES = ({"net_size": 1},)


def build(**changes):
    options = {**OPTIONS, **changes}
    return ShuffleNetV2(**options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
