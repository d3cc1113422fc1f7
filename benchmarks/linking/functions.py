"""One function for each kernel family, named after it."""

import torch
from torch.nn import functional


def pointwise(x, y):  # evokernel: x=f32[64,256], y=f32[64,256]
    return torch.tanh(x) * y + x


def rowwise(x):  # evokernel: x=f32[64,256]
    return torch.softmax(x, 1)


def columnwise(x):  # evokernel: x=f32[64,256]
    return x.sum(0)


def matmul(x, w):  # evokernel: x=f16[64,128], w=f16[128,256]
    return torch.relu(x @ w)


def attention(q, k, v):  # evokernel: q=f16[2,4,512,64], k=f16[2,4,512,64], v=f16[2,4,512,64]
    return functional.scaled_dot_product_attention(q, k, v)


def windowed(x):  # evokernel: x=f32[2,16,32,32]
    return functional.max_pool2d(x, 2)


def convolution(x, w):  # evokernel: x=f16[2,32,16,16], w=f16[64,32,3,3]
    return functional.conv2d(x, w)


def transposed(x, w):  # evokernel: x=f16[2,32,8,8], w=f16[32,16,4,4]
    return functional.conv_transpose2d(x, w, stride=2, padding=1)


def layout_copy(x):  # evokernel: x=f32[64,256]
    return functional.pad(x, (3, 5))


def layout_turn(x):  # evokernel: x=f32[64,48,32]
    return x.permute(2, 1, 0).reshape(-1)


def triangle(x):  # evokernel: x=f32[64,256]
    return torch.tril(x)


def arg(x):  # evokernel: x=f32[64,256]
    return torch.argmax(x, 1)


def integers(x, y):  # evokernel: x=i32[64,256], y=i32[64,256]
    return (x & y) + x // 3


def integer_rows(x):  # evokernel: x=i32[64,256]
    return x.amax(1)


def take(x, index):  # evokernel: x=f32[64,256], index=i64[32]
    return x[index]


def put(x, index, y):  # evokernel: x=f32[64,256], index=i64[32], y=f32[32,256]
    return x.index_put((index,), y)


def bag(x, index, starts):  # evokernel: x=f32[64,256], index=i64[128], starts=i64[8]
    return functional.embedding_bag(index, x, starts, mode="sum")


def scan(x):  # evokernel: x=f32[64,256]
    return torch.cumsum(x, 1)


def sort(x):  # evokernel: x=f32[64,256]
    return torch.sort(x, 1).values


def interleave(x, y):  # evokernel: x=f32[64,256], y=f32[64,256]
    return torch.stack((x, y), -1)


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.units = torch.nn.GRU(32, 64)

    def forward(self, x):  # evokernel: x=f32[16,8,32]
        return torch.relu(self.units(x)[0])
