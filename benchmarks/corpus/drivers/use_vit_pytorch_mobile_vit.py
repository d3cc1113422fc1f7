"""MobileViT (mobile_vit) of vit-pytorch."""

import torch
from vit_pytorch.mobile_vit import MobileViT

PROJECT = "vit_pytorch"
FILE = "vit_pytorch/mobile_vit.py"
OPTIONS = {
    "image_size": (64, 64),
    "dims": [32, 48, 64],
    "channels": [8, 8, 16, 16, 24, 24, 32, 32, 48, 48, 64],
    "num_classes": 10,
}
CHANGES = ({"expansion": 2}, {"depths": (1, 1, 1)})


def build(**changes):
    options = {**OPTIONS, **changes}
    return MobileViT(**options)


def inputs(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
