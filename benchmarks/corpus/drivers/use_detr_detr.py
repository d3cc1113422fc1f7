"""DETR around a backbone of one convolution."""

import torch
from models.detr import DETR
from models.position_encoding import PositionEmbeddingSine
from models.transformer import Transformer
from util.misc import NestedTensor

PROJECT = "detr"
FILE = "models/detr.py"
CHANGES = ({"aux_loss": False}, {"num_queries": 3})


class Backbone(torch.nn.Module):
    num_channels = 24

    def __init__(self):
        super().__init__()
        self.body = torch.nn.Conv2d(3, self.num_channels, 4, 4)
        self.embedding = PositionEmbeddingSine(16, normalize=True)

    def forward(self, samples):
        seen = NestedTensor(self.body(samples.tensors), samples.mask[:, ::4, ::4])
        return [seen], [self.embedding(seen)]


def build(num_queries=5, aux_loss=True):
    transformer = Transformer(32, 4, 1, 1, 64, return_intermediate_dec=True)
    return DETR(Backbone(), transformer, 7, num_queries, aux_loss)


def inputs(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
