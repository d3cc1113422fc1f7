import math
import torch
from torch import nn
from torch.nn import functional as F


class T5LayerNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        variance = hidden_states.to(torch.float32).pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        if self.weight.dtype in [torch.float16, torch.bfloat16]:
            hidden_states = hidden_states.to(self.weight.dtype)
        return self.weight * hidden_states


class T5Attention(nn.Module):
    def __init__(self, d_model=64, heads=4, d_kv=16, buckets=16, max_distance=64):
        super().__init__()
        self.heads, self.d_kv, self.buckets, self.max_distance = heads, d_kv, buckets, max_distance
        self.q = nn.Linear(d_model, heads * d_kv, bias=False)
        self.k = nn.Linear(d_model, heads * d_kv, bias=False)
        self.v = nn.Linear(d_model, heads * d_kv, bias=False)
        self.o = nn.Linear(heads * d_kv, d_model, bias=False)
        self.relative_attention_bias = nn.Embedding(buckets, heads)

    @staticmethod
    def _relative_position_bucket(relative_position, bidirectional=True, num_buckets=32, max_distance=128):
        relative_buckets = 0
        if bidirectional:
            num_buckets //= 2
            relative_buckets += (relative_position > 0).to(torch.long) * num_buckets
            relative_position = torch.abs(relative_position)
        else:
            relative_position = -torch.min(relative_position, torch.zeros_like(relative_position))
        max_exact = num_buckets // 2
        is_small = relative_position < max_exact
        if_large = max_exact + (
            torch.log(relative_position.float() / max_exact)
            / math.log(max_distance / max_exact)
            * (num_buckets - max_exact)
        ).to(torch.long)
        if_large = torch.min(if_large, torch.full_like(if_large, num_buckets - 1))
        relative_buckets += torch.where(is_small, relative_position, if_large)
        return relative_buckets

    def compute_bias(self, query_length, key_length, device=None):
        context = torch.arange(query_length, dtype=torch.long, device=device)[:, None]
        memory = torch.arange(key_length, dtype=torch.long, device=device)[None, :]
        bucket = self._relative_position_bucket(
            memory - context, bidirectional=True, num_buckets=self.buckets, max_distance=self.max_distance
        )
        values = self.relative_attention_bias(bucket)
        return values.permute([2, 0, 1]).unsqueeze(0)

    def forward(self, hidden_states, mask=None):
        batch_size, seq_length = hidden_states.shape[:2]

        def shape(states):
            return states.view(batch_size, -1, self.heads, self.d_kv).transpose(1, 2)

        q, k, v = shape(self.q(hidden_states)), shape(self.k(hidden_states)), shape(self.v(hidden_states))
        scores = torch.matmul(q, k.transpose(3, 2))
        position_bias = self.compute_bias(seq_length, seq_length, device=scores.device)
        if mask is not None:
            position_bias = position_bias + mask
        scores += position_bias
        weights = F.softmax(scores.float(), dim=-1).type_as(scores)
        weights = F.dropout(weights, p=0.1, training=self.training)
        out = (
            torch.matmul(weights, v).transpose(1, 2).contiguous().view(batch_size, -1, self.heads * self.d_kv)
        )
        return self.o(out)


class T5Block(nn.Module):
    def __init__(self, d_model=64):
        super().__init__()
        self.norm = T5LayerNorm(d_model)
        self.attention = T5Attention(d_model)
        self.norm2 = T5LayerNorm(d_model)
        self.wi_0 = nn.Linear(d_model, 128, bias=False)
        self.wi_1 = nn.Linear(d_model, 128, bias=False)
        self.wo = nn.Linear(128, d_model, bias=False)
        self.eval()

    def forward(self, hidden_states, attention_mask=None):
        extended = None
        if attention_mask is not None:
            extended = (1.0 - attention_mask[:, None, None, :].to(hidden_states.dtype)) * torch.finfo(
                hidden_states.dtype
            ).min
        hidden_states = hidden_states + self.attention(self.norm(hidden_states), mask=extended)
        forwarded = self.norm2(hidden_states)
        forwarded = F.gelu(self.wi_0(forwarded), approximate="tanh") * self.wi_1(forwarded)
        return hidden_states + self.wo(forwarded)


def get_inputs():
    return {"hidden_states": torch.randn(2, 24, 64), "attention_mask": torch.ones(2, 24, dtype=torch.long)}
