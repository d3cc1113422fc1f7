"""The distance of lpips, untrained."""

import torch
from lpips.lpips import LPIPS

PROJECT = "lpips"
FILE = "lpips/lpips.py"
OPTIONS = {"pretrained": False, "pnet_rand": True, "net": "squeeze", "verbose": False}
CHANGES = ({"use_dropout": False}, {"spatial": True}, {"lpips": False})


def build(**changes):
    options = {**OPTIONS, **changes}
    return LPIPS(**options)


def inputs(batch=2, size=64):
    return (torch.randn(batch, 3, size, size), torch.randn(batch, 3, size, size))


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
