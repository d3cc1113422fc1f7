"""SimMIM of Microsoft around Swin Transformer."""

from types import SimpleNamespace

import torch
from models.simmim import SimMIM, SwinTransformerForSimMIM

PROJECT = "Swin-Transformer"
FILE = "models/simmim.py"
CHANGES = ({"enable": False}, {"patch_size": 5})


def build(enable=True, patch_size=7):
    config = SimpleNamespace(NORM_TARGET=SimpleNamespace(ENABLE=enable, PATCH_SIZE=patch_size))
    encoder = SwinTransformerForSimMIM(
        img_size=32, patch_size=4, embed_dim=32, depths=[1, 1], num_heads=[2, 4], window_size=4, num_classes=0
    )
    return SimMIM(config, encoder, 8, 3, 4)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size), torch.randint(0, 2, (batch, size // 4, size // 4)))


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
