"""ResNet of pytorch-cifar."""

import torch
from models.resnet import BasicBlock, ResNet

PROJECT = "pytorch-cifar"
FILE = "models/resnet.py"
OPTIONS = {"num_classes": 10}
CHANGES = ({"num_classes": 7},)


def build(**changes):
    options = {**OPTIONS, **changes}
    return ResNet(BasicBlock, [1, 1, 1, 1], **options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
