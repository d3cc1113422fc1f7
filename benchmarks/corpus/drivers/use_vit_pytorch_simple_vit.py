"""SimpleViT (simple_vit) of vit-pytorch."""

import torch
from vit_pytorch.simple_vit import SimpleViT

PROJECT = "vit_pytorch"
FILE = "vit_pytorch/simple_vit.py"
OPTIONS = {
    "image_size": 32,
    "patch_size": 8,
    "num_classes": 10,
    "dim": 64,
    "depth": 2,
    "heads": 4,
    "mlp_dim": 128,
}
CHANGES = ({"heads": 2}, {"dim_head": 32})


def build(**changes):
    options = {**OPTIONS, **changes}
    return SimpleViT(**options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
