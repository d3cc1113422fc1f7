"""A transformer of local-attention."""

import torch
from local_attention.transformer import LocalTransformer

PROJECT = "local_attention"
FILE = "local_attention/transformer.py"
OPTIONS = {
    "num_tokens": 64,
    "max_seq_len": 64,
    "dim": 64,
    "depth": 2,
    "causal": True,
    "local_attn_window_size": 8,
    "heads": 4,
    "dim_head": 16,
}
CHANGES = ({"ff_dropout": 0.4}, {"use_xpos": True}, {"causal": False})


def build(**changes):
    options = {**OPTIONS, **changes}
    return LocalTransformer(**options)


def inputs(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
