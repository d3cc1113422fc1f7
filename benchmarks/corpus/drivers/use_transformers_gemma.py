"""GemmaForCausalLM of transformers."""

import torch
from transformers.models.gemma.configuration_gemma import GemmaConfig
from transformers.models.gemma.modeling_gemma import GemmaForCausalLM

PROJECT = "transformers"
FILE = "transformers/models/gemma/modeling_gemma.py"
OPTIONS = {
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 64,
}
CHANGES = ({"rms_norm_eps": 0.3}, {"attention_bias": True})


def build(**changes):
    options = {**OPTIONS, **changes}
    return GemmaForCausalLM(GemmaConfig(**options))


def inputs(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
