"""The conformer block of conformer."""

import torch
from conformer.conformer import ConformerBlock

PROJECT = "conformer"
FILE = "conformer/conformer.py"
OPTIONS = {"dim": 64, "dim_head": 16, "heads": 4, "ff_mult": 2, "conv_kernel_size": 7}
CHANGES = ({"attn_dropout": 0.3}, {"conv_causal": True}, {"ff_dropout": 0.4})


def build(**changes):
    options = {**OPTIONS, **changes}
    return ConformerBlock(**options)


def inputs(batch=2, size=16):
    return (torch.randn(batch, size, 64),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
