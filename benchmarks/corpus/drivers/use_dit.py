"""DiT as it was published."""

import torch
from models import DiT

PROJECT = "DiT"
FILE = "models.py"
OPTIONS = {
    "input_size": 16,
    "patch_size": 4,
    "in_channels": 4,
    "hidden_size": 64,
    "depth": 2,
    "num_heads": 4,
    "num_classes": 10,
}
CHANGES = ({"class_dropout_prob": 0.5}, {"mlp_ratio": 2.0}, {"learn_sigma": False})


def build(**changes):
    options = {**OPTIONS, **changes}
    return DiT(**options)


def inputs(batch=2, size=16):
    return (torch.randn(batch, 4, 16, 16), torch.randint(0, 1000, (batch,)), torch.randint(0, 10, (batch,)))


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
