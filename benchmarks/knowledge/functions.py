"""A typical small task for each kind of kernel: what the exemplars of prompts compute.

``python benchmarks/exemplars.py`` captures them.
"""

import torch
from torch.nn import functional


def pointwise(x, y):  # evokernel: x=f32[1000,768], y=f32[1000,768]
    return torch.sigmoid(x) * y


def piecewise(x, w, b):  # evokernel: x=f32[32,64,56,56], w=f32[64], b=f32[64]
    return functional.batch_norm(x, None, None, w, b, training=True)


def rowwise(x):  # evokernel: x=f32[4096,1000]
    return torch.softmax(x, 1)


def columnwise(x):  # evokernel: x=f32[4096,512]
    return x.sum(0)


def matmul(x, w):  # evokernel: x=f16[1000,1024], w=f16[1024,768]
    return torch.relu(x @ w)


def matmul_epilogue(x, w, b):  # evokernel: x=f16[1000,1024], w=f16[768,1024], b=f16[768]
    return functional.gelu(functional.linear(x, w, b), approximate="tanh")


def attention(q, k, v):  # evokernel: q=f16[2,8,512,64], k=f16[2,8,512,64], v=f16[2,8,512,64]
    return functional.scaled_dot_product_attention(q, k, v)


def pooling(x):  # evokernel: x=f32[8,32,56,56]
    return functional.max_pool2d(x, 2)


def depthwise(x, w):  # evokernel: x=f32[8,32,56,56], w=f32[32,1,3,3]
    return functional.conv2d(x, w, padding=1, groups=32)


def convolution(x, w):  # evokernel: x=f16[8,64,28,28], w=f16[128,64,3,3]
    return functional.conv2d(x, w, padding=1)


def convolution_epilogue(x, w, b):  # evokernel: x=f16[8,64,28,28], w=f16[128,64,3,3], b=f16[128]
    return functional.hardswish(functional.conv2d(x, w, b, padding=1))


def convolution_1d(x, w):  # evokernel: x=f16[8,64,1024], w=f16[128,64,3]
    return functional.conv1d(x, w)


def convolution_rows(x, w):  # evokernel: x=f16[8,8,160,160], w=f16[32,8,5,5]
    return functional.conv2d(x, w)


def transposed(x, w):  # evokernel: x=f16[2,64,16,16], w=f16[64,32,4,4]
    return functional.conv_transpose2d(x, w, stride=2, padding=1)


def layout_copy(x):  # evokernel: x=f32[1000,257]
    return functional.pad(x, (3, 5))


def layout_turn(x):  # evokernel: x=f32[64,256,96]
    return x.permute(0, 2, 1).reshape(-1)


def triangle(x):  # evokernel: x=f32[1024,1024]
    return torch.tril(x)


def arg(x):  # evokernel: x=f32[1000,512]
    return torch.argmax(x, 1)


def integers(x, y):  # evokernel: x=i32[1000,256], y=i32[1000,256]
    return (x & y) + x // 3


def integer_rows(x):  # evokernel: x=i32[1000,256]
    return x.amax(1)


def take(x, index):  # evokernel: x=f32[1000,256], index=i64[4096]
    return x[index]


def put(x, index, y):  # evokernel: x=f32[1000,256], index=i64[512], y=f32[512,256]
    return x.index_put((index,), y)


def bag(x, index, starts):  # evokernel: x=f32[1000,256], index=i64[4096], starts=i64[256]
    return functional.embedding_bag(index, x, starts, mode="sum")


def resize(x):  # evokernel: x=f32[2,4,32,32]
    return functional.interpolate(x, size=(48, 48), mode="bilinear")


def grid_sample(x, grid):  # evokernel: x=f32[2,4,32,32], grid=f32[2,24,24,2]
    return functional.grid_sample(x, grid, align_corners=False)


def scan(x):  # evokernel: x=f32[1000,2048]
    return torch.cumsum(x, 1)


def sort(x):  # evokernel: x=f32[1000,512]
    return torch.sort(x, 1).values


def interleave(x, y):  # evokernel: x=f32[1000,256], y=f32[1000,256]
    return torch.stack((x, y), -1)


def paired(x, y):  # evokernel: x=f32[1000,256,2], y=f32[1000,256,2]
    return torch.view_as_real(torch.view_as_complex(x) * torch.view_as_complex(y))


def iota(x):  # evokernel: x=f32[100000]
    return torch.arange(x.shape[0], dtype=torch.int32, device=x.device)


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.units = torch.nn.GRU(64, 128)

    def forward(self, x):  # evokernel: x=f32[32,8,64]
        return self.units(x)[0]
