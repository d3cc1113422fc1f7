"""The conditional UNet of diffusers."""

import torch
from diffusers.models.unets.unet_2d_condition import UNet2DConditionModel

PROJECT = "diffusers"
FILE = "diffusers/models/unets/unet_2d_condition.py"
OPTIONS = {
    "sample_size": 16,
    "block_out_channels": (32, 32),
    "layers_per_block": 1,
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
    "cross_attention_dim": 16,
    "attention_head_dim": 8,
    "norm_num_groups": 8,
}
CHANGES = ({"dropout": 0.4}, {"act_fn": "gelu"}, {"norm_eps": 0.3}, {"freq_shift": 1})


def build(**changes):
    options = {**OPTIONS, **changes}
    return UNet2DConditionModel(**options)


def inputs(batch=2, size=16):
    return (torch.randn(batch, 4, size, size), torch.randint(0, 1000, (batch,)), torch.randn(batch, 6, 16))


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
