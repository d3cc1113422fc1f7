"""MambaForCausalLM of transformers."""

import torch
from transformers.models.mamba.configuration_mamba import MambaConfig
from transformers.models.mamba.modeling_mamba import MambaForCausalLM

PROJECT = "transformers"
FILE = "transformers/models/mamba/modeling_mamba.py"
OPTIONS = {"vocab_size": 64, "hidden_size": 32, "state_size": 8, "num_hidden_layers": 2}
CHANGES = (
    {"layer_norm_epsilon": 0.3},
    {"use_bias": True},
    {"residual_in_fp32": False},
    {"hidden_act": "gelu"},
)


def build(**changes):
    options = {**OPTIONS, **changes}
    return MambaForCausalLM(MambaConfig(**options))


def inputs(batch=2, size=8):
    return (torch.randint(0, 64, (batch, size)),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
