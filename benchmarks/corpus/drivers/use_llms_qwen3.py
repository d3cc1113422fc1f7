"""Qwen3 of LLMs-from-scratch, in bfloat16."""

import torch
from llms_from_scratch.qwen3 import Qwen3Model

PROJECT = "LLMs-from-scratch"
FILE = "pkg/llms_from_scratch/qwen3.py"
OPTIONS = {
    "vocab_size": 64,
    "context_length": 32,
    "emb_dim": 32,
    "n_heads": 4,
    "n_layers": 2,
    "hidden_dim": 64,
    "head_dim": 16,
    "qk_norm": True,
    "n_kv_groups": 2,
    "rope_base": 10_000.0,
    "dtype": torch.bfloat16,
}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
CHANGES = (EXPERTS, {"dtype": torch.float32}, {"qk_norm": False}, {"rope_base": 100.0})


def build(**changes):
    options = {**OPTIONS, **changes}
    return Qwen3Model(options)


def inputs(batch=2, size=12):
    return (torch.randint(0, 64, (batch, size)),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
