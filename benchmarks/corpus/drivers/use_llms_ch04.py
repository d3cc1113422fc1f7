"""The GPT of the package of LLMs-from-scratch, slow and fast."""

import torch
from llms_from_scratch.ch04 import GPTModel, GPTModelFast

PROJECT = "LLMs-from-scratch"
FILE = "pkg/llms_from_scratch/ch04.py"
OPTIONS = {
    "vocab_size": 64,
    "context_length": 32,
    "emb_dim": 32,
    "n_heads": 4,
    "n_layers": 2,
    "drop_rate": 0.1,
    "qkv_bias": False,
}
CHANGES = ({"qkv_bias": True}, {"drop_rate": 0.6})


class Both(torch.nn.Module):
    def __init__(self, options):
        super().__init__()
        self.slow, self.fast = GPTModel(options), GPTModelFast(options)

    def forward(self, tokens):
        return self.slow(tokens), self.fast(tokens)


def build(**changes):
    options = {**OPTIONS, **changes}
    return Both(options)


def inputs(batch=2, size=12):
    return (torch.randint(0, 64, (batch, size)),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
