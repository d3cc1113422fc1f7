"""The transformer of open_clip."""

import torch
from open_clip.transformer import VisionTransformer

PROJECT = "open_clip"
FILE = "open_clip/transformer.py"
OPTIONS = {
    "image_size": 32,
    "patch_size": 8,
    "width": 64,
    "layers": 2,
    "heads": 4,
    "mlp_ratio": 2.0,
    "output_dim": 32,
}
CHANGES = ({"ls_init_value": 0.1}, {"patch_dropout": 0.5}, {"pool_type": "avg"})


def build(**changes):
    options = {**OPTIONS, **changes}
    return VisionTransformer(**options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
