"""MobileNetV3 of timm."""

import torch
from timm.models.mobilenetv3 import MobileNetV3, decode_arch_def

PROJECT = "timm"
FILE = "timm/models/mobilenetv3.py"
OPTIONS = {
    "block_args": [["ds_r1_k3_s1_e1_c16_nre"], ["ir_r2_k5_s2_e3_c24_se0.25"], ["cn_r1_k1_s1_c64"]],
    "num_classes": 10,
    "stem_size": 16,
    "num_features": 64,
}
CHANGES = ({"drop_rate": 0.3}, {"head_bias": False})


def build(**changes):
    options = {**OPTIONS, **changes}
    options["block_args"] = decode_arch_def(options["block_args"])  # the constructor empties it
    return MobileNetV3(**options)


def inputs(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
