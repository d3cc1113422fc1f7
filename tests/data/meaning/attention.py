"""Scaled products with a mask that may be left out."""

import math

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width=64, heads=4, dropout=0.1):
        super().__init__()
        self.head_dim = width // heads
        self.scale_by_depth = False
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, mask=None):
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(self.head_dim)
        if self.scale_by_depth:
            scores = scores / 2
        if mask is not None:
            scores = scores + mask
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return torch.matmul(weights, value)


def get_inputs():
    return [torch.randn(2, 4, 16, 16), torch.randn(2, 4, 16, 16), torch.randn(2, 4, 16, 16)]


def get_init_inputs():
    return []
