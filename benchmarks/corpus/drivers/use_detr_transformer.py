"""The transformer of DETR, with padding masks and learned queries."""

import torch
from models.transformer import Transformer

PROJECT = "detr"
FILE = "models/transformer.py"
OPTIONS = {
    "d_model": 32,
    "nhead": 4,
    "num_encoder_layers": 1,
    "num_decoder_layers": 2,
    "dim_feedforward": 64,
    "return_intermediate_dec": True,
}
CHANGES = (
    {"normalize_before": True},
    {"activation": "gelu"},
    {"dropout": 0.5},
    {"return_intermediate_dec": False},
)


def build(**changes):
    options = {**OPTIONS, **changes}
    return Transformer(**options)


def inputs(batch=2, size=6):
    mask = torch.zeros(batch, size, size, dtype=torch.bool)
    mask[:, :, size - 2 :] = True
    images, positions = torch.randn(2, batch, 32, size, size)
    return (images, mask, torch.randn(5, 32), positions)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
