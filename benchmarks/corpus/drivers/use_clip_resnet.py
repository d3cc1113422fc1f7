"""CLIP of OpenAI with its residual network and attention pooling."""

import torch
from clip.model import CLIP

PROJECT = "CLIP"
FILE = "clip/model.py"
OPTIONS = {
    "embed_dim": 32,
    "image_resolution": 32,
    "vision_layers": (1, 1, 1, 1),
    "vision_width": 16,
    "vision_patch_size": 8,
    "context_length": 16,
    "vocab_size": 64,
    "transformer_width": 64,
    "transformer_heads": 4,
    "transformer_layers": 2,
}
CHANGES = ({"transformer_heads": 2}, {"vision_layers": (2, 1, 1, 1)})


def build(**changes):
    options = {**OPTIONS, **changes}
    return CLIP(**options)


def inputs(batch=3, size=32):
    return (torch.randn(batch, 3, size, size), torch.randint(0, 64, (batch, 16)))


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
