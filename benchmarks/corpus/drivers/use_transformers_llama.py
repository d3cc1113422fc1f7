"""LlamaForCausalLM of transformers."""

import torch
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaForCausalLM

PROJECT = "transformers"
FILE = "transformers/models/llama/modeling_llama.py"
OPTIONS = {
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
CHANGES = (
    {"rms_norm_eps": 0.3},
    {"hidden_act": "gelu"},
    {"attention_bias": True},
    {"attn_implementation": "eager"},
    {"num_key_value_heads": 4},
)


def build(**changes):
    options = {**OPTIONS, **changes}
    return LlamaForCausalLM(LlamaConfig(**options))


def inputs(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
