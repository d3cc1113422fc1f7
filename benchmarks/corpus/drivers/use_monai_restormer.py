"""Restormer of MONAI."""

import torch
from monai.networks.nets.restormer import Restormer

PROJECT = "monai"
FILE = "monai/networks/nets/restormer.py"
OPTIONS = {
    "spatial_dims": 2,
    "in_channels": 1,
    "out_channels": 1,
    "dim": 16,
    "num_blocks": (1, 1),
    "heads": (1, 2),
    "num_refinement_blocks": 1,
}
CHANGES = ({"bias": True}, {"ffn_expansion_factor": 2.0}, {"flash_attention": True})


def build(**changes):
    options = {**OPTIONS, **changes}
    return Restormer(**options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 1, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
