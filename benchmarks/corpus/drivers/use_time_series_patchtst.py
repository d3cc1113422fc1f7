"""PatchTST of Time-Series-Library."""

from types import SimpleNamespace

import torch
from models.PatchTST import Model

PROJECT = "Time-Series-Library"
FILE = "models/PatchTST.py"
OPTIONS = {
    "task_name": "long_term_forecast",
    "seq_len": 32,
    "label_len": 16,
    "pred_len": 16,
    "enc_in": 4,
    "dec_in": 4,
    "c_out": 4,
    "d_model": 32,
    "d_ff": 64,
    "n_heads": 4,
    "e_layers": 2,
    "d_layers": 1,
    "factor": 1,
    "dropout": 0.1,
    "activation": "gelu",
    "embed": "timeF",
    "freq": "h",
    "moving_avg": 5,
    "top_k": 2,
    "num_kernels": 2,
    "num_class": 3,
}
CHANGES = ({"dropout": 0.4}, {"n_heads": 2}, {"activation": "relu"})


def build(**changes):
    options = {**OPTIONS, **changes}
    return Model(SimpleNamespace(**options))


def inputs(batch=2, size=16):
    return (
        torch.randn(batch, 32, 4),
        torch.randn(batch, 32, 4),
        torch.randn(batch, 32, 4),
        torch.randn(batch, 32, 4),
    )


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
