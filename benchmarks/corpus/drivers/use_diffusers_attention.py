"""The transformer block of diffusers."""

import torch
from diffusers.models.attention import BasicTransformerBlock

PROJECT = "diffusers"
FILE = "diffusers/models/attention.py"
OPTIONS = {"dim": 64, "num_attention_heads": 4, "attention_head_dim": 16, "cross_attention_dim": 32}
CHANGES = ({"dropout": 0.4}, {"activation_fn": "gelu"}, {"norm_eps": 0.3}, {"attention_bias": True})


def build(**changes):
    options = {**OPTIONS, **changes}
    return BasicTransformerBlock(**options)


def inputs(batch=2, size=16):
    return {"hidden_states": torch.randn(batch, size, 64), "encoder_hidden_states": torch.randn(batch, 7, 32)}


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
