"""Llama as pytorch-llama writes it, one token at a time behind a cache."""

import torch
from model import ModelArgs, Transformer

PROJECT = "pytorch-llama"
FILE = "model.py"
OPTIONS = {
    "dim": 64,
    "n_layers": 2,
    "n_heads": 4,
    "n_kv_heads": 2,
    "vocab_size": 64,
    "multiple_of": 32,
    "max_batch_size": 8,
    "max_seq_len": 32,
    "device": "cpu",
}
CHANGES = ({"norm_eps": 0.3}, {"n_kv_heads": 4}, {"ffn_dim_multiplier": 1.5})


def build(**changes):
    options = {**OPTIONS, **changes}
    return Transformer(ModelArgs(**options))


def inputs(batch=2, position=5):
    return (torch.randint(0, 64, (batch, 1)), position)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
