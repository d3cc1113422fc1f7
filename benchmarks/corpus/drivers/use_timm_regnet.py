"""RegNet of timm."""

import torch
from timm.models.regnet import RegNet, RegNetCfg

PROJECT = "timm"
FILE = "timm/models/regnet.py"
OPTIONS = {"cfg": RegNetCfg(depth=13, w0=24, wa=36.44, wm=2.49, group_size=8), "num_classes": 10}
CHANGES = ({"drop_rate": 0.3}, {"zero_init_last": False})


def build(**changes):
    options = {**OPTIONS, **changes}
    return RegNet(**options)


def inputs(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
