"""U-Net's decoder of segmentation-models-pytorch."""

import torch
from segmentation_models_pytorch import Unet

PROJECT = "segmentation_models_pytorch"
FILE = "segmentation_models_pytorch/decoders/unet/decoder.py"
OPTIONS = {
    "encoder_name": "resnet18",
    "encoder_weights": None,
    "decoder_channels": (32, 16, 16, 8, 8),
    "classes": 2,
}
CHANGES = ({"decoder_attention_type": "scse"}, {"decoder_use_norm": False}, {"activation": "sigmoid"})


def build(**changes):
    options = {**OPTIONS, **changes}
    return Unet(**options)


def inputs(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
