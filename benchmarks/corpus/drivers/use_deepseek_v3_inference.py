"""The inference of DeepSeek-V3, in bfloat16 on one process. Its kernels import triton."""

import torch
from model import ModelArgs, Transformer

PROJECT = "DeepSeek-V3"
FILE = "inference/model.py"
OPTIONS = {
    "max_batch_size": 8,
    "max_seq_len": 64,
    "vocab_size": 64,
    "dim": 64,
    "inter_dim": 128,
    "moe_inter_dim": 32,
    "n_layers": 2,
    "n_heads": 4,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "n_activated_experts": 2,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "original_seq_len": 32,
}
CHANGES = (
    {"q_lora_rank": 16},
    {"score_func": "sigmoid"},
    {"route_scale": 2.5},
    {"rope_factor": 4},
    {"n_expert_groups": 2},
    {"original_seq_len": 64},
)

torch.set_default_dtype(torch.bfloat16)  # as the project's generate.py does


class Continued(torch.nn.Module):
    """A prompt and then one token more, as the project's generation calls the model."""

    def __init__(self, arguments):
        super().__init__()
        self.model = Transformer(arguments)

    def forward(self, tokens):
        last = tokens.shape[1] - 1
        return self.model(tokens[:, :last]), self.model(tokens[:, last:], last)


def build(**changes):
    options = {**OPTIONS, **changes}
    model = Continued(ModelArgs(**options))
    for parameter in model.parameters():  # the project leaves them as they lie in memory, for a checkpoint
        torch.nn.init.normal_(parameter, std=0.1)
    return model


def inputs(batch=2, size=8):
    return (torch.randint(0, 64, (batch, size)),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
