"""MobileNetV2 of torchvision."""

import torch
from torchvision.models.mobilenetv2 import MobileNetV2

PROJECT = "torchvision"
FILE = "torchvision/models/mobilenetv2.py"
OPTIONS = {"num_classes": 10, "width_mult": 0.25}
CHANGES = ({"dropout": 0.6}, {"width_mult": 0.5})


def build(**changes):
    options = {**OPTIONS, **changes}
    return MobileNetV2(**options)


def inputs(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
