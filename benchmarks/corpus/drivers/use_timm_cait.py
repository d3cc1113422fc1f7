"""Cait of timm."""

import torch
from timm.models.cait import Cait

PROJECT = "timm"
FILE = "timm/models/cait.py"
OPTIONS = {"img_size": 32, "patch_size": 8, "embed_dim": 64, "depth": 2, "num_heads": 4, "num_classes": 10}
CHANGES = ({"drop_rate": 0.2}, {"init_values": 0.5})


def build(**changes):
    options = {**OPTIONS, **changes}
    return Cait(**options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
