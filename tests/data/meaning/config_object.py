"""Everything that the forward does is said by an object that others may change."""

from types import SimpleNamespace

import torch
from torch import nn

TEMPERATURE = 2.0


class Model(nn.Module):
    def __init__(self, config=None):
        super().__init__()
        self.config = config or SimpleNamespace(activation="gelu", residual=True, limit=3.0, steps=2)
        self.linear = nn.Linear(64, 64)

    def activate(self, x):
        if self.config.activation == "gelu":
            return nn.functional.gelu(x)
        return torch.relu(x)

    def forward(self, x):
        y = x
        for _ in range(self.config.steps):
            y = self.activate(self.linear(y) / TEMPERATURE)
        y = y.clamp(-self.config.limit, self.config.limit)
        if self.config.residual:
            y = y + x
        return y * torch.sigmoid(y)


def get_inputs():
    return [torch.randn(8, 64)]


def get_init_inputs():
    return []
