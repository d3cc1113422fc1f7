"""Swin Transformer V2 of Microsoft, with cosine attention."""

import torch
from models.swin_transformer_v2 import SwinTransformerV2

PROJECT = "Swin-Transformer"
FILE = "models/swin_transformer_v2.py"
OPTIONS = {
    "img_size": 32,
    "patch_size": 2,
    "embed_dim": 32,
    "depths": [2, 2],
    "num_heads": [2, 4],
    "window_size": 4,
    "num_classes": 10,
}
CHANGES = ({"qkv_bias": False}, {"ape": True}, {"drop_path_rate": 0.9}, {"pretrained_window_sizes": [2, 2]})


def build(**changes):
    options = {**OPTIONS, **changes}
    return SwinTransformerV2(**options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
