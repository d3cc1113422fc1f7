"""MixtralForCausalLM of transformers."""

import torch
from transformers.models.mixtral.configuration_mixtral import MixtralConfig
from transformers.models.mixtral.modeling_mixtral import MixtralForCausalLM

PROJECT = "transformers"
FILE = "transformers/models/mixtral/modeling_mixtral.py"
OPTIONS = {
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_local_experts": 4,
    "max_position_embeddings": 64,
}
CHANGES = ({"rms_norm_eps": 0.3}, {"num_experts_per_tok": 1}, {"router_jitter_noise": 0.1})


def build(**changes):
    options = {**OPTIONS, **changes}
    return MixtralForCausalLM(MixtralConfig(**options))


def inputs(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
