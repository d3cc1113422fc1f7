"""VisionTransformer of torchvision."""

import torch
from torchvision.models.vision_transformer import VisionTransformer

PROJECT = "torchvision"
FILE = "torchvision/models/vision_transformer.py"
OPTIONS = {
    "image_size": 32,
    "patch_size": 8,
    "num_layers": 2,
    "num_heads": 4,
    "hidden_dim": 64,
    "mlp_dim": 128,
    "num_classes": 10,
}
CHANGES = ({"dropout": 0.3}, {"attention_dropout": 0.3}, {"num_heads": 2})


def build(**changes):
    options = {**OPTIONS, **changes}
    return VisionTransformer(**options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
