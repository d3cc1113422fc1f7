"""What a program returns through a view is computed before the view."""

from __future__ import annotations

from typing import Any

import numpy as np


def test_a_result_is_turned_after_a_kernel_that_knows_no_views(builder: Any, on_twin: Any) -> None:
    b = builder()
    x = b.input("x", (4, 60, 9))
    found = b.call("argmax.default", x, 1, shape=(4, 9), dtype="int64")
    turned = b.call("permute.default", found, (1, 0), shape=(9, 4), dtype="int64")
    values = np.random.default_rng(1).normal(size=(4, 60, 9)).astype(np.float32)
    (result,) = on_twin(b.task(turned), {"x": values})
    np.testing.assert_array_equal(result, values.argmax(1).T)
