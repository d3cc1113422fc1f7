"""A transformer of linear-attention-transformer."""

import torch
from linear_attention_transformer.linear_attention_transformer import LinearAttentionTransformer

PROJECT = "linear_attention_transformer"
FILE = "linear_attention_transformer/linear_attention_transformer.py"
OPTIONS = {"dim": 64, "depth": 2, "max_seq_len": 64, "heads": 4}
CHANGES = ({"causal": True, "blindspot_size": 1}, {"ff_dropout": 0.4}, {"ff_glu": True})


def build(**changes):
    options = {**OPTIONS, **changes}
    return LinearAttentionTransformer(**options)


def inputs(batch=2, size=16):
    return (torch.randn(batch, size, 64),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
