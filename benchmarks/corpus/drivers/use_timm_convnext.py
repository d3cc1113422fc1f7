"""ConvNeXt of timm."""

import torch
from timm.models.convnext import ConvNeXt

PROJECT = "timm"
FILE = "timm/models/convnext.py"
OPTIONS = {"depths": (1, 1, 1, 1), "dims": (16, 32, 48, 64), "num_classes": 10}
CHANGES = ({"ls_init_value": None}, {"conv_mlp": True}, {"drop_path_rate": 0.3}, {"norm_eps": 0.1})


def build(**changes):
    options = {**OPTIONS, **changes}
    return ConvNeXt(**options)


def inputs(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
