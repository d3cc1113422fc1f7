"""The attention of performer-pytorch."""

import torch
from performer_pytorch.performer_pytorch import SelfAttention

PROJECT = "performer_pytorch"
FILE = "performer_pytorch/performer_pytorch.py"
OPTIONS = {"dim": 64, "heads": 4, "dim_head": 16, "nb_features": 32}
CHANGES = ({"dropout": 0.4}, {"generalized_attention": True}, {"qkv_bias": True})


def build(**changes):
    options = {**OPTIONS, **changes}
    return SelfAttention(**options)


def inputs(batch=2, size=16):
    return (torch.randn(batch, size, 64),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
