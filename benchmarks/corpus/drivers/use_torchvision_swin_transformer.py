"""SwinTransformer of torchvision."""

import torch
from torchvision.models.swin_transformer import SwinTransformer

PROJECT = "torchvision"
FILE = "torchvision/models/swin_transformer.py"
OPTIONS = {
    "patch_size": [2, 2],
    "embed_dim": 32,
    "depths": [2, 2],
    "num_heads": [2, 4],
    "window_size": [4, 4],
    "num_classes": 10,
}
CHANGES = ({"dropout": 0.3}, {"mlp_ratio": 2.0}, {"stochastic_depth_prob": 0.5})


def build(**changes):
    options = {**OPTIONS, **changes}
    return SwinTransformer(**options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
