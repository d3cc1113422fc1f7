"""SegResNet of MONAI."""

import torch
from monai.networks.nets.segresnet import SegResNet

PROJECT = "monai"
FILE = "monai/networks/nets/segresnet.py"
OPTIONS = {
    "spatial_dims": 2,
    "in_channels": 1,
    "out_channels": 2,
    "init_filters": 8,
    "blocks_down": (1, 1),
    "blocks_up": (1,),
}
CHANGES = ({"dropout_prob": 0.4}, {"upsample_mode": "deconv"})


def build(**changes):
    options = {**OPTIONS, **changes}
    return SegResNet(**options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 1, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
