"""MlpMixer of timm."""

import torch
from timm.models.mlp_mixer import MlpMixer

PROJECT = "timm"
FILE = "timm/models/mlp_mixer.py"
OPTIONS = {"img_size": 32, "patch_size": 8, "num_blocks": 2, "embed_dim": 64, "num_classes": 10}
CHANGES = ({"drop_rate": 0.2}, {"drop_path_rate": 0.3}, {"global_pool": "avg"})


def build(**changes):
    options = {**OPTIONS, **changes}
    return MlpMixer(**options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
