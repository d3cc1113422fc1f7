"""The RNN of PyTorch's word_language_model example."""

import torch
from model import TransformerModel

PROJECT = "pytorch-examples"
FILE = "word_language_model/model.py"
OPTIONS = {"ntoken": 64, "ninp": 32, "nhead": 4, "nhid": 64, "nlayers": 2}
CHANGES = ({"dropout": 0.2},)


def build(**changes):
    options = {**OPTIONS, **changes}
    return TransformerModel(**options)


def inputs(batch=2, size=16):
    return (torch.randint(0, 64, (size, batch)),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
