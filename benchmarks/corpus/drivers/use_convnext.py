"""ConvNeXt as it was published."""

import torch
from models.convnext import ConvNeXt

PROJECT = "ConvNeXt"
FILE = "models/convnext.py"
OPTIONS = {"depths": [1, 1, 1, 1], "dims": [16, 32, 48, 64], "num_classes": 10}
CHANGES = ({"drop_path_rate": 0.3}, {"layer_scale_init_value": 0.0}, {"head_init_scale": 0.5})


def build(**changes):
    options = {**OPTIONS, **changes}
    return ConvNeXt(**options)


def inputs(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
