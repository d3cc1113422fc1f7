"""The residual block of diffusers."""

import torch
from diffusers.models.resnet import ResnetBlock2D

PROJECT = "diffusers"
FILE = "diffusers/models/resnet.py"
OPTIONS = {"in_channels": 32, "out_channels": 64, "temb_channels": 16, "groups": 8}
CHANGES = (
    {"dropout": 0.4},
    {"non_linearity": "gelu"},
    {"eps": 0.3},
    {"output_scale_factor": 2.0},
    {"time_embedding_norm": "scale_shift"},
)


def build(**changes):
    options = {**OPTIONS, **changes}
    return ResnetBlock2D(**options)


def inputs(batch=2, size=16):
    return (torch.randn(batch, 32, size, size), torch.randn(batch, 16))


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
