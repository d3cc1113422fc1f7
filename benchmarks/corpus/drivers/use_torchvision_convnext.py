"""ConvNeXt of torchvision."""

import torch
from torchvision.models.convnext import CNBlockConfig, ConvNeXt

PROJECT = "torchvision"
FILE = "torchvision/models/convnext.py"
OPTIONS = {"block_setting": [CNBlockConfig(16, 32, 1), CNBlockConfig(32, None, 2)], "num_classes": 10}
CHANGES = ({"stochastic_depth_prob": 0.5}, {"layer_scale": 0.5})


def build(**changes):
    options = {**OPTIONS, **changes}
    return ConvNeXt(**options)


def inputs(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
