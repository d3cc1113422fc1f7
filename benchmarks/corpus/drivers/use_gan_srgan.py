"""Generator of SRGAN in PyTorch-GAN."""

import torch
from models import GeneratorResNet

PROJECT = "PyTorch-GAN"
FILE = "implementations/srgan/models.py"
OPTIONS = {"n_residual_blocks": 1}
CHANGES = ({"n_residual_blocks": 2},)


def build(**changes):
    options = {**OPTIONS, **changes}
    return GeneratorResNet(**options)


def inputs(batch=2, size=8):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
