"""BertModel of transformers."""

import torch
from transformers.models.bert.configuration_bert import BertConfig
from transformers.models.bert.modeling_bert import BertModel

PROJECT = "transformers"
FILE = "transformers/models/bert/modeling_bert.py"
OPTIONS = {
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
CHANGES = (
    {"hidden_dropout_prob": 0.5},
    {"hidden_act": "relu"},
    {"layer_norm_eps": 0.3},
    {"attn_implementation": "eager"},
)


def build(**changes):
    options = {**OPTIONS, **changes}
    return BertModel(BertConfig(**options))


def inputs(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
