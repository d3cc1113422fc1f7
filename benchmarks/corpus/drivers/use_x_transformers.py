"""A decoder of x-transformers."""

import torch
from x_transformers.x_transformers import Decoder, TransformerWrapper

PROJECT = "x_transformers"
FILE = "x_transformers/x_transformers.py"
OPTIONS = {"dim": 64, "depth": 2, "heads": 4, "rotary_pos_emb": True, "use_rmsnorm": True, "ff_glu": True}
CHANGES = (
    {"use_rmsnorm": False},
    {"ff_glu": False},
    {"attn_dropout": 0.3},
    {"attn_qk_norm": True},
    {"alibi_pos_bias": True, "rotary_pos_emb": False},
)


def build(**changes):
    options = {**OPTIONS, **changes}
    return TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=Decoder(**options))


def inputs(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
