"""MaxViT (max_vit) of vit-pytorch."""

import torch
from vit_pytorch.max_vit import MaxViT

PROJECT = "vit_pytorch"
FILE = "vit_pytorch/max_vit.py"
OPTIONS = {"num_classes": 10, "dim": 32, "depth": (1, 1), "dim_head": 16, "window_size": 4}
CHANGES = ({"dropout": 0.3}, {"mbconv_shrinkage_rate": 0.5})


def build(**changes):
    options = {**OPTIONS, **changes}
    return MaxViT(**options)


def inputs(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
