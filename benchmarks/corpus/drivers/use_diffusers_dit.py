"""The DiT of diffusers."""

import torch
from diffusers.models.transformers.dit_transformer_2d import DiTTransformer2DModel

PROJECT = "diffusers"
FILE = "diffusers/models/transformers/dit_transformer_2d.py"
OPTIONS = {
    "num_attention_heads": 4,
    "attention_head_dim": 16,
    "in_channels": 4,
    "out_channels": 8,
    "num_layers": 2,
    "sample_size": 16,
    "num_embeds_ada_norm": 10,
}
CHANGES = ({"dropout": 0.4}, {"norm_eps": 0.3}, {"attention_bias": False})


def build(**changes):
    options = {**OPTIONS, **changes}
    return DiTTransformer2DModel(**options)


def inputs(batch=2, size=16):
    return {
        "hidden_states": torch.randn(batch, 4, 16, 16),
        "timestep": torch.randint(0, 1000, (batch,)),
        "class_labels": torch.randint(0, 10, (batch,)),
    }


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
