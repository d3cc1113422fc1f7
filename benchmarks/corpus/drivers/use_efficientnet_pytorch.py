"""EfficientNet of efficientnet-pytorch."""

import torch
from efficientnet_pytorch import EfficientNet

PROJECT = "efficientnet_pytorch"
FILE = "efficientnet_pytorch/model.py"
OPTIONS = {"num_classes": 10, "width_coefficient": 0.25, "depth_coefficient": 0.1}
CHANGES = ({"dropout_rate": 0.5}, {"drop_connect_rate": 0.5}, {"batch_norm_epsilon": 0.3})


def build(**changes):
    options = {**OPTIONS, **changes}
    return EfficientNet.from_name("efficientnet-b0", **options)


def inputs(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
