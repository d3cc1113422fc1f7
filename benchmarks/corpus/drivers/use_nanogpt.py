"""nanoGPT."""

import torch
from model import GPT, GPTConfig

PROJECT = "nanoGPT"
FILE = "model.py"
OPTIONS = {"block_size": 32, "vocab_size": 64, "n_layer": 2, "n_head": 4, "n_embd": 64, "dropout": 0.1}
CHANGES = ({"dropout": 0.0}, {"bias": False}, {"n_head": 2})


def build(**changes):
    options = {**OPTIONS, **changes}
    return GPT(GPTConfig(**options))


def inputs(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)), torch.randint(0, 64, (batch, size)))


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
