"""Qwen2ForCausalLM of transformers."""

import torch
from transformers.models.qwen2.configuration_qwen2 import Qwen2Config
from transformers.models.qwen2.modeling_qwen2 import Qwen2ForCausalLM

PROJECT = "transformers"
FILE = "transformers/models/qwen2/modeling_qwen2.py"
OPTIONS = {
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
CHANGES = ({"rms_norm_eps": 0.3}, {"hidden_act": "gelu"}, {"attn_implementation": "eager"})


def build(**changes):
    options = {**OPTIONS, **changes}
    return Qwen2ForCausalLM(Qwen2Config(**options))


def inputs(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
