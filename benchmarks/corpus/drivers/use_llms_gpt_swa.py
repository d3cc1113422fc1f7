"""GPT of LLMs-from-scratch with attention in a sliding window."""

import torch
from gpt_with_kv_swa import GPTModel

PROJECT = "LLMs-from-scratch"
FILE = "ch04/06_swa/gpt_with_kv_swa.py"
OPTIONS = {
    "vocab_size": 64,
    "context_length": 32,
    "emb_dim": 32,
    "n_heads": 4,
    "n_layers": 2,
    "drop_rate": 0.1,
    "qkv_bias": False,
    "sliding_window_size": 4,
    "sliding_window_stride": 1,
}
CHANGES = ({"qkv_bias": True}, {"drop_rate": 0.6}, {"sliding_window_size": 7})


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
