"""SABlock of MONAI."""

import torch
from monai.networks.blocks.selfattention import SABlock

PROJECT = "monai"
FILE = "monai/networks/blocks/selfattention.py"
OPTIONS = {"hidden_size": 64, "num_heads": 4}
CHANGES = (
    {"dropout_rate": 0.4},
    {"qkv_bias": True},
    {"save_attn": True},
    {"causal": True, "sequence_length": 16},
)


def build(**changes):
    options = {**OPTIONS, **changes}
    return SABlock(**options)


def inputs(batch=2, size=16):
    return (torch.randn(batch, size, 64),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
