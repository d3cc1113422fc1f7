"""ViTModel of transformers."""

import torch
from transformers.models.vit.configuration_vit import ViTConfig
from transformers.models.vit.modeling_vit import ViTModel

PROJECT = "transformers"
FILE = "transformers/models/vit/modeling_vit.py"
OPTIONS = {
    "image_size": 32,
    "patch_size": 8,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
CHANGES = ({"hidden_dropout_prob": 0.5}, {"qkv_bias": False}, {"layer_norm_eps": 0.3})


def build(**changes):
    options = {**OPTIONS, **changes}
    return ViTModel(ViTConfig(**options))


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
