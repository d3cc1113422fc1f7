"""ViT (vit) of vit-pytorch."""

import torch
from vit_pytorch.vit import ViT

PROJECT = "vit_pytorch"
FILE = "vit_pytorch/vit.py"
OPTIONS = {
    "image_size": 32,
    "patch_size": 8,
    "num_classes": 10,
    "dim": 64,
    "depth": 2,
    "heads": 4,
    "mlp_dim": 128,
}
CHANGES = ({"dropout": 0.3}, {"emb_dropout": 0.3}, {"pool": "mean"}, {"heads": 2})


def build(**changes):
    options = {**OPTIONS, **changes}
    return ViT(**options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
