"""A rotary embedding: its inputs include one tensor twice where nothing is rotated."""

import torch
from torch import nn


def rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class Model(nn.Module):
    def forward(self, q, k, cos, sin):
        q_embed = (q * cos) + (rotate_half(q) * sin)
        k_embed = (k * cos) + (rotate_half(k) * sin)
        return q_embed, k_embed


def get_inputs():
    return [torch.randn(2, 4, 16, 32), torch.randn(2, 4, 16, 32), torch.rand(16, 32), torch.rand(16, 32)]


def get_init_inputs():
    return []
