"""Twenty tasks of every category whose prompts ``make prompts`` writes; names begin with the category."""

import torch
from torch.nn import functional


def activation_gelu(x):  # evokernel: x=f16[4096,4096]
    return functional.gelu(x)


def activation_mish(x):  # evokernel: x=bf16[2048,8192]
    return functional.mish(x)


def elementwise_masked(x, y):  # evokernel: x=f32[2048,4096], y=f32[2048,4096]
    return torch.where(x > y, x * 2, y - 1)


def elementwise_broadcast(x, y):  # evokernel: x=f32[1024,2048], y=f32[1024,1]
    return x * y + x


def softmax_rows(x):  # evokernel: x=f16[8192,1000]
    return torch.softmax(x, -1)


def normalization_layer(x, w, b):  # evokernel: x=f32[4096,1024], w=f32[1024], b=f32[1024]
    return functional.layer_norm(x, (1024,), w, b)


def normalization_rms(x, w):  # evokernel: x=f16[4096,2048], w=f16[2048]
    return functional.rms_norm(x, (2048,), w)


def reduction_columns(x):  # evokernel: x=f32[8192,768]
    return x.sum(0)


def reduction_argmax(x):  # evokernel: x=f32[4096,1000]
    return torch.argmax(x, 1)


def loss_huber(x, y):  # evokernel: x=f32[4096,512], y=f32[4096,512]
    return functional.smooth_l1_loss(x, y)


def matmul_plain(x, w):  # evokernel: x=f16[2048,4096], w=f16[4096,1024]
    return x @ w


def matmul_linear_gelu(x, w, b):  # evokernel: x=f32[1024,1024], w=f32[2048,1024], b=f32[2048]
    return functional.gelu(functional.linear(x, w, b))


def convolution_plain(x, w):  # evokernel: x=f16[16,64,56,56], w=f16[64,64,3,3]
    return functional.conv2d(x, w, padding=1)


def convolution_bias_tanh(x, w, b):  # evokernel: x=f32[8,32,32,32], w=f32[64,32,3,3], b=f32[64]
    return torch.tanh(functional.conv2d(x, w, b))


def pooling_max(x):  # evokernel: x=f32[16,64,112,112]
    return functional.max_pool2d(x, 3, 2, 1)


def index_embedding(index, table):  # evokernel: index=i64[8192], table=f32[50000,512]
    return functional.embedding(index, table)


def layout_permute(x):  # evokernel: x=f16[32,64,1024]
    return x.permute(0, 2, 1).contiguous()


def scan_cumsum(x):  # evokernel: x=f32[2048,4096]
    return torch.cumsum(x, 1)


def attention_heads(q, k, v):  # evokernel: q=f16[4,16,1024,64], k=f16[4,16,1024,64], v=f16[4,16,1024,64]
    return functional.scaled_dot_product_attention(q, k, v)


def elementwise_sort(x):  # evokernel: x=f32[2048,512]
    return torch.sort(x, 1).values
