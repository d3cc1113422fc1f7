"""The image encoder of segment-anything."""

import torch
from segment_anything.modeling.image_encoder import ImageEncoderViT

PROJECT = "segment_anything"
FILE = "segment_anything/modeling/image_encoder.py"
OPTIONS = {
    "img_size": 32,
    "patch_size": 4,
    "embed_dim": 32,
    "depth": 2,
    "num_heads": 4,
    "out_chans": 16,
    "use_rel_pos": True,
    "window_size": 4,
}
CHANGES = ({"qkv_bias": False}, {"use_rel_pos": False}, {"window_size": 3})


def build(**changes):
    options = {**OPTIONS, **changes}
    return ImageEncoderViT(**options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
