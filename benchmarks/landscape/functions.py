"""The tasks whose schedules are timed on a GPU: the first twelve compute what problems of KernelBench do,
the others what none of its first two levels does. A kernel of each takes some 10 us to 1 ms on an H200."""

import torch
from torch.nn import functional


def softmax(x):  # evokernel: x=f32[4096,8192]
    return functional.softmax(x, -1)


def layer_norm(x, w, b):  # evokernel: x=f32[8192,2048], w=f32[2048], b=f32[2048]
    return functional.layer_norm(x, (x.shape[-1],), w, b)


def l2_norm(x):  # evokernel: x=f32[2048,16384]
    return x / x.norm(dim=1, keepdim=True)


def sum_over_middle(x):  # evokernel: x=f32[128,512,512]
    return x.sum(1)


def argmax_over_middle(x):  # evokernel: x=f32[64,1024,512]
    return x.argmax(1)


def cumulative_sum(x):  # evokernel: x=f32[4096,4096]
    return torch.cumsum(x, 1)


def average_pool(x):  # evokernel: x=f32[16,64,256,256]
    return functional.avg_pool2d(x, 3, 2, 1)


def depthwise(x, w):  # evokernel: x=f32[16,64,128,128], w=f32[64,1,3,3]
    return functional.conv2d(x, w, padding=1, groups=64)


def product(x, y):  # evokernel: x=f16[2048,2048], y=f16[2048,2048]
    return x @ y


def deep_product(x, y):  # evokernel: x=f16[128,16384], y=f16[16384,256]
    return x @ y


def linear_gelu(x, w, b):  # evokernel: x=f16[4096,1024], w=f16[1024,1024], b=f16[1024]
    return functional.gelu(functional.linear(x, w, b))


def convolution(x, w, b):  # evokernel: x=f16[32,64,56,56], w=f16[128,64,3,3], b=f16[128]
    return functional.conv2d(x, w, b, padding=1)


def soft_cross_entropy(x, y):  # evokernel: x=f32[8192,4096], y=f32[8192,4096]
    return -(y * functional.log_softmax(x, -1)).sum(-1)


def residual_rms_norm(x, r, w):  # evokernel: x=f16[8192,4096], r=f16[8192,4096], w=f16[4096]
    h = x + r
    return h * torch.rsqrt((h * h).mean(-1, keepdim=True) + 1e-6) * w


def tanh_gate(x, a, b):  # evokernel: x=f16[8192,4096], a=f16[4096], b=f16[4096]
    return torch.tanh(x * a + b) * x


def row_variance(x):  # evokernel: x=f32[16384,1024]
    return x.var(dim=1, unbiased=False)


def standardise_columns(x):  # evokernel: x=f32[4096,4096]
    return (x - x.mean(0)) / (x.std(0) + 1e-5)


def gated_product(x, w, y):  # evokernel: x=bf16[2048,1024], w=bf16[1024,2048], y=bf16[2048,2048]
    return functional.silu(x @ w) * y


def sigmoid_scores(q, k):  # evokernel: q=f32[32,512,64], k=f32[32,512,64]
    return torch.sigmoid(torch.bmm(q, k.transpose(1, 2)) * 0.125)


def causal_attention(q, k, v):  # evokernel: q=f16[4,16,1024,64], k=f16[4,16,1024,64], v=f16[4,16,1024,64]
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def gather(x, i):  # evokernel: x=f32[8192,4096], i=i64[8192,1024]
    return torch.gather(x, 1, i)


def embedding(i, table):  # evokernel: i=i64[65536], table=f16[50000,256]
    return functional.embedding(i, table)


def bag_of_rows(i, table):  # evokernel: i=i64[8192,32], table=f32[50000,128]
    return functional.embedding(i, table).sum(1)


def transposed(x):  # evokernel: x=f32[64,1024,1024]
    return x.transpose(1, 2).contiguous()
