"""Eva of timm."""

import torch
from timm.models.eva import Eva

PROJECT = "timm"
FILE = "timm/models/eva.py"
OPTIONS = {
    "img_size": 32,
    "patch_size": 8,
    "embed_dim": 64,
    "depth": 2,
    "num_heads": 4,
    "num_classes": 10,
    "use_rot_pos_emb": True,
    "swiglu_mlp": True,
    "use_abs_pos_emb": False,
}
CHANGES = ({"qkv_bias": False}, {"swiglu_mlp": False}, {"init_values": 0.1}, {"drop_path_rate": 0.3})


def build(**changes):
    options = {**OPTIONS, **changes}
    return Eva(**options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
