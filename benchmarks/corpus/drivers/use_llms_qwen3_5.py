"""The gated delta network of Qwen3.5 in LLMs-from-scratch."""

from types import SimpleNamespace

import torch
from qwen3_5_transformers import Qwen3_5GatedDeltaNet

PROJECT = "LLMs-from-scratch"
FILE = "ch05/16_qwen3.5/qwen3_5_transformers.py"
OPTIONS = {
    "hidden_size": 32,
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_conv_kernel_dim": 4,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "dtype": None,
}
CHANGES = ({"dtype": torch.bfloat16}, {"rms_norm_eps": 0.3}, {"linear_num_key_heads": 4})


def build(**changes):
    options = {**OPTIONS, **changes}
    return Qwen3_5GatedDeltaNet(SimpleNamespace(**options), 0)


def inputs(batch=2, size=12):
    return (torch.randn(batch, size, 32),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
