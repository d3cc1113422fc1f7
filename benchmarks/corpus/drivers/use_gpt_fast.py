"""The transformer of gpt-fast."""

import torch
from model import ModelArgs, Transformer

PROJECT = "gpt-fast"
FILE = "model.py"
OPTIONS = {"block_size": 32, "vocab_size": 64, "n_layer": 2, "n_head": 4, "dim": 64, "n_local_heads": 2}
CHANGES = ({"norm_eps": 0.3}, {"rope_base": 100.0})


def with_caches(model):
    model.setup_caches(2, 32)
    return model


def build(**changes):
    options = {**OPTIONS, **changes}
    return with_caches(Transformer(ModelArgs(**options)))


def inputs(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)), torch.arange(size))


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
