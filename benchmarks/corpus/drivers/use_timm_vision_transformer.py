"""VisionTransformer of timm."""

import torch
from timm.models.vision_transformer import VisionTransformer

PROJECT = "timm"
FILE = "timm/models/vision_transformer.py"
OPTIONS = {
    "img_size": 32,
    "patch_size": 8,
    "embed_dim": 64,
    "depth": 2,
    "num_heads": 4,
    "num_classes": 10,
    "dynamic_img_size": True,
}
CHANGES = (
    {"qkv_bias": False},
    {"num_heads": 2},
    {"drop_rate": 0.2},
    {"init_values": 0.1},
    {"global_pool": "avg"},
)


def build(**changes):
    options = {**OPTIONS, **changes}
    return VisionTransformer(**options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
