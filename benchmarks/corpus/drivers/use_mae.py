"""The masked autoencoder of Facebook."""

from functools import partial

import numpy
import timm.models.vision_transformer
import torch


class Block(timm.models.vision_transformer.Block):
    """With the argument that timm had when the project was written."""

    def __init__(self, *args, qk_scale=None, **kwargs):
        super().__init__(*args, **kwargs)


timm.models.vision_transformer.Block = Block
numpy.float = float  # as numpy was then

from models_mae import MaskedAutoencoderViT  # noqa: E402

PROJECT = "mae"
FILE = "models_mae.py"
OPTIONS = {
    "img_size": 32,
    "patch_size": 8,
    "embed_dim": 32,
    "depth": 1,
    "num_heads": 4,
    "decoder_embed_dim": 16,
    "decoder_depth": 1,
    "decoder_num_heads": 2,
    "norm_layer": partial(torch.nn.LayerNorm, eps=1e-6),
}
CHANGES = ({"norm_pix_loss": True}, {"mlp_ratio": 2.0})


def build(**changes):
    options = {**OPTIONS, **changes}
    return MaskedAutoencoderViT(**options)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
