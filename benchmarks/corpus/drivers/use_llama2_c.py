"""The training model of llama2.c."""

import torch
from model import ModelArgs, Transformer

PROJECT = "llama2.c"
FILE = "model.py"
OPTIONS = {
    "dim": 64,
    "n_layers": 2,
    "n_heads": 4,
    "n_kv_heads": 2,
    "vocab_size": 64,
    "multiple_of": 32,
    "max_seq_len": 32,
    "dropout": 0.0,
}
CHANGES = ({"dropout": 0.3}, {"norm_eps": 0.3}, {"n_kv_heads": 4})


def build(**changes):
    options = {**OPTIONS, **changes}
    return Transformer(ModelArgs(**options))


def inputs(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)), torch.randint(0, 64, (batch, size)))


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
