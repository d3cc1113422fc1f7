"""GPT2LMHeadModel of transformers."""

import torch
from transformers.models.gpt2.configuration_gpt2 import GPT2Config
from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel

PROJECT = "transformers"
FILE = "transformers/models/gpt2/modeling_gpt2.py"
OPTIONS = {"vocab_size": 64, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64}
CHANGES = (
    {"resid_pdrop": 0.0},
    {"activation_function": "relu"},
    {"layer_norm_epsilon": 0.3},
    {"scale_attn_by_inverse_layer_idx": True},
    {"attn_implementation": "eager"},
)


def build(**changes):
    options = {**OPTIONS, **changes}
    return GPT2LMHeadModel(GPT2Config(**options))


def inputs(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
