"""CLIPVisionModel of transformers."""

import torch
from transformers.models.clip.configuration_clip import CLIPVisionConfig
from transformers.models.clip.modeling_clip import CLIPVisionModel

PROJECT = "transformers"
FILE = "transformers/models/clip/modeling_clip.py"
OPTIONS = {
    "image_size": 32,
    "patch_size": 8,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
CHANGES = ({"hidden_act": "gelu"}, {"layer_norm_eps": 0.3}, {"attention_dropout": 0.4})


def build(**changes):
    options = {**OPTIONS, **changes}
    return CLIPVisionModel(CLIPVisionConfig(**options))


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
