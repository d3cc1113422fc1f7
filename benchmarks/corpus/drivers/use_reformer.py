"""The chunked feed-forward and LSH attention of reformer-pytorch."""

import torch
from reformer_pytorch.reformer_pytorch import LSHSelfAttention

PROJECT = "reformer_pytorch"
FILE = "reformer_pytorch/reformer_pytorch.py"
OPTIONS = {"dim": 64, "heads": 4, "bucket_size": 4, "n_hashes": 2}
CHANGES = ({"dropout": 0.4}, {"causal": True}, {"attn_chunks": 2})


def build(**changes):
    options = {**OPTIONS, **changes}
    return LSHSelfAttention(**options)


def inputs(batch=2, size=16):
    return (torch.randn(batch, size, 64),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
