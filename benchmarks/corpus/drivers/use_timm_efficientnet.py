"""EfficientNet of timm."""

import torch
from timm.models.efficientnet import EfficientNet, decode_arch_def

PROJECT = "timm"
FILE = "timm/models/efficientnet.py"
OPTIONS = {
    "block_args": [["ds_r1_k3_s1_e1_c16_se0.25"], ["ir_r2_k3_s2_e4_c24_se0.25"]],
    "num_classes": 10,
    "stem_size": 16,
    "num_features": 64,
}
CHANGES = ({"drop_rate": 0.3}, {"drop_path_rate": 0.3})


def build(**changes):
    options = {**OPTIONS, **changes}
    options["block_args"] = decode_arch_def(options["block_args"])  # the constructor empties it
    return EfficientNet(**options)


def inputs(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
