"""CaiT (cait) of vit-pytorch."""

import torch
from vit_pytorch.cait import CaiT

PROJECT = "vit_pytorch"
FILE = "vit_pytorch/cait.py"
OPTIONS = {
    "image_size": 32,
    "patch_size": 8,
    "num_classes": 10,
    "dim": 64,
    "depth": 2,
    "heads": 4,
    "mlp_dim": 128,
    "cls_depth": 1,
}
CHANGES = ({"dropout": 0.3}, {"layer_dropout": 0.3})


def build(**changes):
    options = {**OPTIONS, **changes}
    return CaiT(**options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
