"""The sine embedding of positions of DETR, which takes an object of the project."""

import torch
from models.position_encoding import PositionEmbeddingSine
from util.misc import NestedTensor

PROJECT = "detr"
FILE = "models/position_encoding.py"
OPTIONS = {"num_pos_feats": 16, "normalize": True}
CHANGES = ({"normalize": False}, {"temperature": 20}, {"scale": 1.5})


class Padded(torch.nn.Module):
    def __init__(self, embedding):
        super().__init__()
        self.embedding = embedding

    def forward(self, images, mask):
        return self.embedding(NestedTensor(images, mask))


def build(**changes):
    options = {**OPTIONS, **changes}
    return Padded(PositionEmbeddingSine(**options))


def inputs(batch=2, size=8):
    mask = torch.zeros(batch, size, size, dtype=torch.bool)
    mask[:, :, size - 2 :] = True
    return (torch.randn(batch, 3, size, size), mask)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
