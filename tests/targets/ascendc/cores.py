"""Kernels of many tiles a core: on few cores at small sizes, and in make thorough on all of the chip."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from evokernel_core.hardware.ascend.chip import Chip


def on_all_cores_too(**sizes: Any) -> Any:
    """A module's own ``few_cores``: those at the sizes that the module names, and, thorough, all cores of the
    chip at these ``sizes``, which replace the module's of the same names."""

    @pytest.fixture(
        scope="module", params=["few cores", pytest.param("all cores", marks=pytest.mark.thorough)]
    )
    def few_cores(request: pytest.FixtureRequest, chip: Chip, few_cores: Chip) -> Iterator[Chip]:
        if request.param == "few cores":
            yield few_cores
            return
        with pytest.MonkeyPatch.context() as patch:
            for name, value in sizes.items():
                patch.setattr(request.module, name, value)
            yield chip

    return few_cores
