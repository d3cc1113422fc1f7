"""GATConv of PyTorch Geometric."""

import torch
from torch_geometric.nn.conv.gat_conv import GATConv

PROJECT = "torch_geometric"
FILE = "torch_geometric/nn/conv/gat_conv.py"
OPTIONS = {"in_channels": 16, "out_channels": 8, "heads": 4}
CHANGES = ({"negative_slope": 0.7}, {"dropout": 0.4}, {"concat": False})


def build(**changes):
    options = {**OPTIONS, **changes}
    return GATConv(**options)


def inputs(batch=2, size=16):
    return (torch.randn(batch * size, 16), torch.randint(0, batch * size, (2, 4 * size)))


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
