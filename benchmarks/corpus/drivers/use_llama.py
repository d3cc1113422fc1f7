"""Meta's Llama 2, on one process without CUDA."""

import torch
from fairscale.nn.model_parallel import initialize
from llama.model import ModelArgs, Transformer

PROJECT = "llama"
FILE = "llama/model.py"
OPTIONS = {
    "dim": 64,
    "n_layers": 2,
    "n_heads": 4,
    "n_kv_heads": 2,
    "vocab_size": 64,
    "multiple_of": 32,
    "max_seq_len": 32,
    "max_batch_size": 8,
}
CHANGES = ({"norm_eps": 0.3}, {"n_kv_heads": 4})

torch.Tensor.cuda = lambda tensor, *_, **__: tensor
if not torch.distributed.is_initialized():
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    initialize.initialize_model_parallel(1)


def build(**changes):
    options = {**OPTIONS, **changes}
    model = Transformer(ModelArgs(**options))
    for parameter in model.parameters():  # the project leaves them as they lie in memory, for a checkpoint
        torch.nn.init.normal_(parameter, std=0.1)
    return model


def inputs(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)), 0)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
