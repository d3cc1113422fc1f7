"""SwinTransformer of timm."""

import torch
from timm.models.swin_transformer import SwinTransformer

PROJECT = "timm"
FILE = "timm/models/swin_transformer.py"
OPTIONS = {
    "img_size": 32,
    "patch_size": 2,
    "embed_dim": 32,
    "depths": (2, 2),
    "num_heads": (2, 4),
    "window_size": 4,
    "num_classes": 10,
}
CHANGES = ({"qkv_bias": False}, {"drop_path_rate": 0.5}, {"mlp_ratio": 2.0})


def build(**changes):
    options = {**OPTIONS, **changes}
    return SwinTransformer(**options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
