"""minGPT."""

import torch
from mingpt.model import GPT
from mingpt.utils import CfgNode

PROJECT = "minGPT"
FILE = "mingpt/model.py"
OPTIONS = {
    "model_type": None,
    "block_size": 32,
    "vocab_size": 64,
    "n_layer": 2,
    "n_head": 4,
    "n_embd": 64,
    "embd_pdrop": 0.1,
    "resid_pdrop": 0.1,
    "attn_pdrop": 0.1,
}
CHANGES = ({"attn_pdrop": 0.0}, {"n_head": 2})


def build(**changes):
    options = {**OPTIONS, **changes}
    return GPT(CfgNode(**options))


def inputs(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
