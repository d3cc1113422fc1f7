"""Swin Transformer of Microsoft."""

import torch
from models.swin_transformer import SwinTransformer

PROJECT = "Swin-Transformer"
FILE = "models/swin_transformer.py"
OPTIONS = {
    "img_size": 32,
    "patch_size": 2,
    "embed_dim": 32,
    "depths": [2, 2],
    "num_heads": [2, 4],
    "window_size": 4,
    "num_classes": 10,
}
CHANGES = ({"qk_scale": 0.7}, {"qkv_bias": False}, {"ape": True}, {"drop_path_rate": 0.9})


def build(**changes):
    options = {**OPTIONS, **changes}
    return SwinTransformer(**options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
