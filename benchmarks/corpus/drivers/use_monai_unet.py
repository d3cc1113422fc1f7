"""UNet of MONAI."""

import torch
from monai.networks.nets.unet import UNet

PROJECT = "monai"
FILE = "monai/networks/nets/unet.py"
OPTIONS = {
    "spatial_dims": 2,
    "in_channels": 1,
    "out_channels": 2,
    "channels": (8, 16, 32),
    "strides": (2, 2),
    "num_res_units": 1,
}
CHANGES = ({"dropout": 0.4}, {"act": "relu"}, {"bias": False})


def build(**changes):
    options = {**OPTIONS, **changes}
    return UNet(**options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 1, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
