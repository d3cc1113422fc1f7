"""T5Model of transformers."""

import torch
from transformers.models.t5.configuration_t5 import T5Config
from transformers.models.t5.modeling_t5 import T5Model

PROJECT = "transformers"
FILE = "transformers/models/t5/modeling_t5.py"
OPTIONS = {"vocab_size": 64, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4}
CHANGES = ({"dropout_rate": 0.5}, {"layer_norm_epsilon": 0.3}, {"feed_forward_proj": "gated-gelu"})


def build(**changes):
    options = {**OPTIONS, **changes}
    return T5Model(T5Config(**options))


def inputs(batch=2, size=16):
    return {
        "input_ids": torch.randint(0, 64, (batch, size)),
        "decoder_input_ids": torch.randint(0, 64, (batch, 5)),
    }


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
