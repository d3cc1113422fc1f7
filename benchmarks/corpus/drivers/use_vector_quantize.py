"""The quantiser of vector-quantize-pytorch."""

import torch
from vector_quantize_pytorch.finite_scalar_quantization import FSQ

PROJECT = "vector_quantize_pytorch"
FILE = "vector_quantize_pytorch/finite_scalar_quantization.py"
OPTIONS = {"levels": [8, 5, 5], "dim": 32}
CHANGES = ({"preserve_symmetry": True}, {"noise_dropout": 0.5})


def build(**changes):
    options = {**OPTIONS, **changes}
    return FSQ(**options)


def inputs(batch=2, size=16):
    return (torch.randn(batch, size, 32),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
