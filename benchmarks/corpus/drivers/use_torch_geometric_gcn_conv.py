"""GCNConv of PyTorch Geometric."""

import torch
from torch_geometric.nn.conv.gcn_conv import GCNConv

PROJECT = "torch_geometric"
FILE = "torch_geometric/nn/conv/gcn_conv.py"
OPTIONS = {"in_channels": 16, "out_channels": 32}
CHANGES = ({"bias": False}, {"improved": True}, {"add_self_loops": False})


def build(**changes):
    options = {**OPTIONS, **changes}
    return GCNConv(**options)


def inputs(batch=2, size=16):
    return (torch.randn(batch * size, 16), torch.randint(0, batch * size, (2, 4 * size)))


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
