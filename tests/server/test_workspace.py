"""What an open text says without a look at its model."""

from __future__ import annotations

import time

import pytest
from evokernel_server.documents.workspace import find_calls

CALL = "y = softmax_1.run(x) if softmax_1.holds(x) else torch.softmax(x, -1)\n"
FOUND = {
    "a plain import": f"import torch\nfrom evokernel_kernels import softmax_1\n{CALL}",
    "line ends of Windows": f"from evokernel_kernels import softmax_1\r\n{CALL}",
    "several names": f"from evokernel_kernels import exp_2, softmax_1  # noqa: F401\n{CALL}",
    "names in parentheses": (
        f"from evokernel_kernels import (\n    exp_2,  # one, two\n    softmax_1,\n)\n{CALL}"
    ),
    "a whole body": (
        "from evokernel_kernels import softmax_1\ndef f(x):\n    if softmax_1.holds(x):\n"
        "        return softmax_1.run(x)\n    return torch.softmax(x, -1)\n"
    ),
}
NOT_FOUND = {
    "no import": CALL,
    "another name": f"from evokernel_kernels import exp_2\n{CALL}",
    "another package": f"from my_kernels import softmax_1\n{CALL}",
    "an import in a comment": f"# from evokernel_kernels import softmax_1\n{CALL}",
    "a name in a comment": f"from evokernel_kernels import exp_2  # softmax_1\n{CALL}",
    "an attribute of that name": "from evokernel_kernels import softmax_1\nself.softmax_1.run(x)\n",
    "a longer name": "from evokernel_kernels import softmax_1\nmy_softmax_1.run(x)\n",
    "the guard alone": "from evokernel_kernels import softmax_1\nsoftmax_1.holds(x)\n",
}


@pytest.mark.parametrize("name", FOUND)
def test_calls_of_imported_kernels_are_found(name: str) -> None:
    (call,) = find_calls(FOUND[name])
    assert call.name == "softmax_1"
    assert FOUND[name][call.extent.start : call.extent.end] == "softmax_1.run"


@pytest.mark.parametrize("name", NOT_FOUND)
def test_other_calls_are_not(name: str) -> None:
    assert not find_calls(NOT_FOUND[name])


def test_a_long_file_is_searched_while_typing() -> None:
    text = FOUND["a plain import"] + "    total = total + other.run(self.layer(x)) * 2.0\n" * 20_000
    best = min(_seconds(text) for _ in range(5))
    assert best < 0.1


def _seconds(text: str) -> float:
    start = time.perf_counter()
    assert len(find_calls(text)) == 1
    return time.perf_counter() - start
