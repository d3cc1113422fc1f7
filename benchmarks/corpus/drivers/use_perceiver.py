"""Perceiver of perceiver-pytorch."""

import torch
from perceiver_pytorch.perceiver_pytorch import Perceiver

PROJECT = "perceiver_pytorch"
FILE = "perceiver_pytorch/perceiver_pytorch.py"
OPTIONS = {
    "num_freq_bands": 4,
    "depth": 2,
    "max_freq": 10.0,
    "num_latents": 8,
    "latent_dim": 32,
    "cross_heads": 1,
    "latent_heads": 4,
    "cross_dim_head": 16,
    "latent_dim_head": 16,
    "num_classes": 10,
}
CHANGES = ({"attn_dropout": 0.3}, {"weight_tie_layers": True}, {"fourier_encode_data": False})


def build(**changes):
    options = {**OPTIONS, **changes}
    return Perceiver(**options)


def inputs(batch=2, size=16):
    return (torch.randn(batch, size, size, 3),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
