"""What encoders do with ids before the first layer: masks, positions that skip padding, offsets, labels."""

import torch
from torch import nn


class Embeddings(nn.Module):
    def __init__(self, words=120, fields=3, positions=40, width=16, pad=1):
        super().__init__()
        self.pad = pad
        self.word = nn.Embedding(words, width, padding_idx=pad)
        self.position = nn.Embedding(positions, width, padding_idx=pad)
        self.field = nn.Embedding(fields * 10, width)
        self.register_buffer("offsets", torch.arange(fields) * 10)

    def forward(self, ids, fields, labels):
        real = ids.ne(self.pad).int()
        places = (torch.cumsum(real, dim=1).type_as(real) * real).long() + self.pad
        x = self.word(ids) + self.position(places)
        x = x + self.field(fields % 10 + self.offsets).sum(1, keepdim=True)
        last = x[torch.arange(ids.shape[0], device=ids.device), real.sum(1).long() - 1]
        shifted = torch.cat([torch.full_like(labels[:, :1], 2), labels[:, :-1]], 1)
        shifted = shifted.masked_fill(shifted == -100, self.pad)
        segments = (ids == 2).cumsum(1) // 2
        return x, last, shifted, (segments[:, None] == segments[..., None]), (shifted == labels).sum()


def get_inputs():
    ids = torch.randint(2, 120, (4, 12))
    ids[:, 9:] = 1
    return [ids, torch.randint(0, 99, (4, 3)), torch.randint(0, 120, (4, 12))]
