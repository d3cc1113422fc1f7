"""The transformer of attention-is-all-you-need-pytorch."""

import torch
from transformer.Models import Transformer

PROJECT = "attention-is-all-you-need-pytorch"
FILE = "transformer/SubLayers.py"
OPTIONS = {
    "n_src_vocab": 64,
    "n_trg_vocab": 64,
    "src_pad_idx": 0,
    "trg_pad_idx": 0,
    "d_word_vec": 64,
    "d_model": 64,
    "d_inner": 128,
    "n_layers": 2,
    "n_head": 4,
    "d_k": 16,
    "d_v": 16,
}
CHANGES = ({"dropout": 0.4}, {"scale_emb_or_prj": "none"}, {"n_head": 2})


def build(**changes):
    options = {**OPTIONS, **changes}
    return Transformer(**options)


def inputs(batch=2, size=16):
    return (torch.randint(1, 64, (batch, size)), torch.randint(1, 64, (batch, 7)))


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
