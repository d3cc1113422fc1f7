"""ResNet of torchvision."""

import torch
from torchvision.models.resnet import Bottleneck, ResNet

PROJECT = "torchvision"
FILE = "torchvision/models/resnet.py"
OPTIONS = {"block": Bottleneck, "layers": [1, 1, 1, 1], "num_classes": 10}
CHANGES = ({"zero_init_residual": True}, {"groups": 2})


def build(**changes):
    options = {**OPTIONS, **changes}
    return ResNet(**options)


def inputs(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
