"""mamba-minimal."""

import torch
from model import Mamba, ModelArgs

PROJECT = "mamba-minimal"
FILE = "model.py"
OPTIONS = {"d_model": 32, "n_layer": 2, "vocab_size": 64, "d_state": 8}
CHANGES = ({"conv_bias": False}, {"bias": True}, {"expand": 3})


def build(**changes):
    options = {**OPTIONS, **changes}
    return Mamba(ModelArgs(**options))


def inputs(batch=2, size=8):
    return (torch.randint(0, 64, (batch, size)),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
