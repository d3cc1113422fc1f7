"""GoogLeNet of torchvision."""

import torch
from torchvision.models.googlenet import GoogLeNet

PROJECT = "torchvision"
FILE = "torchvision/models/googlenet.py"
OPTIONS = {"num_classes": 10, "aux_logits": False, "init_weights": False}
CHANGES = ({"dropout": 0.6}, {"transform_input": True})


def build(**changes):
    options = {**OPTIONS, **changes}
    return GoogLeNet(**options)


def inputs(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
