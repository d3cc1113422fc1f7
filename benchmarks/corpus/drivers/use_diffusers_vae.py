"""The autoencoder of diffusers."""

import torch
from diffusers.models.autoencoders.vae import Encoder

PROJECT = "diffusers"
FILE = "diffusers/models/autoencoders/vae.py"
OPTIONS = {
    "in_channels": 3,
    "out_channels": 4,
    "down_block_types": ("DownEncoderBlock2D", "DownEncoderBlock2D"),
    "block_out_channels": (16, 32),
    "norm_num_groups": 8,
}
CHANGES = ({"layers_per_block": 1}, {"act_fn": "gelu"}, {"double_z": False})


def build(**changes):
    options = {**OPTIONS, **changes}
    return Encoder(**options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
