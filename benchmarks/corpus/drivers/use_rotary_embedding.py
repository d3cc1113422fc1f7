"""The rotary embedding of rotary-embedding-torch."""

import torch
from rotary_embedding_torch.rotary_embedding_torch import RotaryEmbedding


class Rotated(torch.nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.rotary = RotaryEmbedding(**options)

    def forward(self, queries, keys):
        return self.rotary.rotate_queries_and_keys(queries, keys)


PROJECT = "rotary_embedding_torch"
FILE = "rotary_embedding_torch/rotary_embedding_torch.py"
OPTIONS = {"dim": 32, "use_xpos": True}
CHANGES = ({"theta": 100.0}, {"xpos_scale_base": 64}, {"interpolate_factor": 2.0})


def build(**changes):
    options = {**OPTIONS, **changes}
    return Rotated(**options)


def inputs(batch=2, size=16):
    return (torch.randn(batch, 4, size, 32), torch.randn(batch, 4, size, 32))


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
