"""Pytorch-UNet."""

import torch
from unet.unet_model import UNet

PROJECT = "Pytorch-UNet"
FILE = "unet/unet_parts.py"
OPTIONS = {"n_channels": 3, "n_classes": 2}
CHANGES = ({"bilinear": True},)


def build(**changes):
    options = {**OPTIONS, **changes}
    return UNet(**options)


def inputs(batch=1, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
