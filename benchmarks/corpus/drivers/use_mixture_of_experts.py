"""The mixture of mixture-of-experts."""

import torch
from mixture_of_experts.mixture_of_experts import MoE

PROJECT = "mixture_of_experts"
FILE = "mixture_of_experts/mixture_of_experts.py"
OPTIONS = {"dim": 32, "num_experts": 4, "hidden_dim": 64}
CHANGES = ({"second_policy_train": "all"}, {"capacity_factor_train": 2.0}, {"loss_coef": 0.5})


def build(**changes):
    options = {**OPTIONS, **changes}
    return MoE(**options)


def inputs(batch=2, size=16):
    return (torch.randn(batch, size, 32),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
