"""The Matern kernel of GPyTorch."""

import torch
from gpytorch.kernels import MaternKernel


class Dense(MaternKernel):
    def __call__(self, left, right):
        return torch.nn.Module.__call__(self, left, right)


PROJECT = "gpytorch"
FILE = "gpytorch/kernels/matern_kernel.py"
OPTIONS = {"nu": 2.5, "ard_num_dims": 4}
CHANGES = ({"nu": 1.5}, {"nu": 0.5})


def build(**changes):
    options = {**OPTIONS, **changes}
    return Dense(**options)


def inputs(batch=2, size=16):
    return (torch.randn(size, 4), torch.randn(size + batch, 4))


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
