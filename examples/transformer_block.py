"""A pre-norm transformer block as in current language models: RMSNorm, attention, SwiGLU."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class RMSNorm(nn.Module):
    """Root-mean-square normalisation with a learned scale, computed in float32."""

    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        h = x.float()
        variance = h.pow(2).mean(dim=-1, keepdim=True)
        h = h * torch.rsqrt(variance + self.eps)
        return self.weight * h.to(x.dtype)


class Attention(nn.Module):
    """Multi-head self-attention with an explicit softmax over the scores."""

    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        batch, length, dim = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, dim // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1)
        weights = torch.softmax(scores * self.scale, dim=-1)
        mixed = (weights @ v).transpose(1, 2).reshape(batch, length, dim)
        return self.out(mixed)


class SwiGLU(nn.Module):
    """The gated feed-forward part: silu(gate(x)) * up(x), projected down."""

    def __init__(self, dim: int, hidden: int):
        super().__init__()
        self.gate = nn.Linear(dim, hidden, bias=False)
        self.up = nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class TransformerBlock(nn.Module):
    """Attention and feed-forward, each normalised before and added with a learned gain after."""

    def __init__(self, dim: int = 512, heads: int = 8, hidden: int = 1376):
        super().__init__()
        self.attention_norm = RMSNorm(dim)
        self.attention = Attention(dim, heads)
        self.mlp_norm = RMSNorm(dim)
        self.mlp = SwiGLU(dim, hidden)
        self.gain = nn.Parameter(torch.full((dim,), 0.5))

    def forward(self, x):
        # the residual stream stays in the model's dtype
        x = x + self.gain * self.attention(self.attention_norm(x))
        return x + self.gain * self.mlp(self.mlp_norm(x))


def get_init_inputs():
    return [512, 8, 1376]


def get_inputs():
    return [torch.randn(4, 256, 512)]
