"""The attentions of LLMs-from-scratch."""

import torch
from llms_from_scratch import ch03

PROJECT = "LLMs-from-scratch"
FILE = "pkg/llms_from_scratch/ch03.py"
CHANGES = ({"bias": True}, {"dropout": 0.6})


class All(torch.nn.Module):
    def __init__(self, bias, dropout):
        super().__init__()
        self.layers = torch.nn.ModuleList(
            (
                ch03.SelfAttention_v2(32, 16, bias),
                ch03.CausalAttention(32, 16, 24, dropout, bias),
                ch03.MultiHeadAttentionWrapper(32, 8, 24, dropout, 2, bias),
                ch03.MultiHeadAttention(32, 16, 24, dropout, 2, bias),
                ch03.PyTorchMultiHeadAttention(32, 16, 2, dropout, bias),
            )
        )
        self.first = ch03.SelfAttention_v1(32, 16)

    def forward(self, x):
        return [self.first(x[0])] + [layer(x) for layer in self.layers[1:]] + [self.layers[0](x[0])]


def build(bias=False, dropout=0.1):
    return All(bias, dropout)


def inputs(batch=2, size=12):
    return (torch.randn(batch, size, 32),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
