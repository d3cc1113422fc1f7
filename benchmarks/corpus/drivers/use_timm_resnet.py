"""ResNet of timm."""

import torch
from timm.models.resnet import BasicBlock, ResNet

PROJECT = "timm"
FILE = "timm/models/resnet.py"
OPTIONS = {
    "block": BasicBlock,
    "layers": [1, 1, 1, 1],
    "channels": (16, 32, 48, 64),
    "num_classes": 10,
    "stem_width": 16,
}
CHANGES = ({"drop_rate": 0.3}, {"output_stride": 16}, {"global_pool": "max"})


def build(**changes):
    options = {**OPTIONS, **changes}
    return ResNet(**options)


def inputs(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
