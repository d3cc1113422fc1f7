"""CCT (cct) of vit-pytorch."""

import torch
from vit_pytorch.cct import CCT

PROJECT = "vit_pytorch"
FILE = "vit_pytorch/cct.py"
OPTIONS = {
    "img_size": 32,
    "embedding_dim": 64,
    "n_conv_layers": 1,
    "num_layers": 2,
    "num_heads": 4,
    "mlp_ratio": 2.0,
    "num_classes": 10,
}
CHANGES = ({"dropout_rate": 0.3}, {"stochastic_depth_rate": 0.5})


def build(**changes):
    options = {**OPTIONS, **changes}
    return CCT(**options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
