"""BERT's encoder of curated-transformers."""

import torch
from curated_transformers.layers.attention import (
    AttentionHeads,
    AttentionMask,
    QkvMode,
    QkvSplitGroupedByHead,
    ScaledDotProductAttention,
    SelfAttention,
)

PROJECT = "curated_transformers"
FILE = "curated_transformers/layers/attention.py"
OPTIONS = {"use_bias": True}
CHANGES = ({"use_bias": False},)


def build(**changes):
    options = {**OPTIONS, **changes}
    return SelfAttention(
        attention_heads=AttentionHeads.uniform(4, QkvSplitGroupedByHead()),
        attention_scorer=ScaledDotProductAttention(dropout_prob=0.1, linear_biases=None),
        hidden_width=64,
        qkv_mode=QkvMode.SEPARATE,
        rotary_embeds=None,
        **options,
    )


def inputs(batch=2, size=16):
    return {
        "input": torch.randn(batch, size, 64),
        "attention_mask": AttentionMask(torch.ones(batch, size, dtype=torch.bool)),
    }


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
