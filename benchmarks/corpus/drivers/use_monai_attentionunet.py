"""AttentionUnet of MONAI."""

import torch
from monai.networks.nets.attentionunet import AttentionUnet

PROJECT = "monai"
FILE = "monai/networks/nets/attentionunet.py"
OPTIONS = {"spatial_dims": 2, "in_channels": 1, "out_channels": 2, "channels": (8, 16), "strides": (2,)}
CHANGES = ({"dropout": 0.4},)


def build(**changes):
    options = {**OPTIONS, **changes}
    return AttentionUnet(**options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 1, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
