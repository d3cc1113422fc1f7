"""GPT of LLMs-from-scratch with a mixture of experts."""

import torch
from gpt_with_kv_moe import GPTModel

PROJECT = "LLMs-from-scratch"
FILE = "ch04/07_moe/gpt_with_kv_moe.py"
OPTIONS = {
    "vocab_size": 64,
    "context_length": 32,
    "emb_dim": 32,
    "n_heads": 4,
    "n_layers": 2,
    "drop_rate": 0.1,
    "qkv_bias": False,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "hidden_dim": 32,
}
CHANGES = ({"qkv_bias": True}, {"drop_rate": 0.6}, {"num_experts_per_tok": 3}, {"num_experts": 0})


class Continued(torch.nn.Module):
    """A prompt and then the tokens behind it, as the project's generation calls the model."""

    def __init__(self, options):
        super().__init__()
        self.model = GPTModel(options)

    def forward(self, tokens):
        self.model.reset_kv_cache()
        parts = (slice(0, -3), slice(-3, -2), slice(-2, -1))
        return [self.model(tokens[:, part], use_cache=True) for part in parts]


def build(**changes):
    options = {**OPTIONS, **changes}
    return Continued(options)


def inputs(batch=2, size=12):
    return (torch.randint(0, 64, (batch, size)),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
