"""Encoder and decoder of MUNIT in PyTorch-GAN, whose normalisation is told its weights."""

import torch
from models import Decoder, Encoder

PROJECT = "PyTorch-GAN"
FILE = "implementations/munit/models.py"
CHANGES = ({"style_dim": 4}, {"n_residual": 2})


class Both(torch.nn.Module):
    def __init__(self, style_dim, n_residual):
        super().__init__()
        self.encoder = Encoder(3, 8, n_residual, 2, style_dim)
        self.decoder = Decoder(3, 8, n_residual, 2, style_dim)

    def forward(self, x):
        return self.decoder(*self.encoder(x))


def build(style_dim=8, n_residual=1):
    return Both(style_dim, n_residual)


def inputs(batch=2, size=16):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
