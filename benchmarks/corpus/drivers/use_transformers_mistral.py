"""MistralForCausalLM of transformers."""

import torch
from transformers.models.mistral.configuration_mistral import MistralConfig
from transformers.models.mistral.modeling_mistral import MistralForCausalLM

PROJECT = "transformers"
FILE = "transformers/models/mistral/modeling_mistral.py"
OPTIONS = {
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
CHANGES = ({"rms_norm_eps": 0.3}, {"sliding_window": 4}, {"hidden_act": "gelu"})


def build(**changes):
    options = {**OPTIONS, **changes}
    return MistralForCausalLM(MistralConfig(**options))


def inputs(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
