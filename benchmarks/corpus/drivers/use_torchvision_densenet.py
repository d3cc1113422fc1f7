"""DenseNet of torchvision."""

import torch
from torchvision.models.densenet import DenseNet

PROJECT = "torchvision"
FILE = "torchvision/models/densenet.py"
OPTIONS = {"growth_rate": 8, "block_config": (2, 2), "num_init_features": 16, "num_classes": 10}
CHANGES = ({"drop_rate": 0.4}, {"memory_efficient": True})


def build(**changes):
    options = {**OPTIONS, **changes}
    return DenseNet(**options)


def inputs(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
