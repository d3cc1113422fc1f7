"""A kernel that a program calls with other sizes."""

from __future__ import annotations

from evokernel_core.targets.triton.kernels.text import TritonKernel
from evokernel_core.targets.triton.launch import Launch, Scratch
from evokernel_core.targets.triton.programs import _with_sizes


def test_every_expression_of_a_launch_has_the_new_sizes() -> None:
    launch = Launch("k", ("cdiv(n, 4) * m",), ("x", "m", "n * 4 + m"), {"BLOCK": "next_power_of_2(n)"})
    kernel = TritonKernel(
        (), (launch,), scratch=(Scratch("n_parts", "float32", "n * 2"),), requires=("n <= 8",)
    )
    other = _with_sizes(kernel, frozenset({"x", "n_parts"}), {"m": "s1", "n": "m"})
    assert other.launches[0] == Launch(
        "k", ("cdiv(m, 4) * s1",), ("x", "s1", "m * 4 + s1"), {"BLOCK": "next_power_of_2(m)"}
    )
    assert other.scratch[0].elements == "m * 2"
    assert other.requires == ("m <= 8",)


def test_a_tensor_that_is_called_like_a_size_stays() -> None:
    kernel = TritonKernel((), (Launch("k", ("1",), ("n", "m")),))
    assert _with_sizes(kernel, frozenset({"n"}), {"n": "s0", "m": "s1"}).launches[0].arguments == ("n", "s1")
