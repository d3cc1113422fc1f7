"""What the vendor's own operator takes for a task that is one: the second baseline of a kernel."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import LatencySource

if TYPE_CHECKING:
    from evokernel_core.hardware.device import Device
    from evokernel_core.vendor.recognise import Recognised


@frozen
class Rival:
    """A function of ``torch_npu`` that computes a task in one launch. ``modelled_us``: its copies and
    vector work at the model's rates, which published measurements exceed (benchmarks/vendor.py);
    ``measured_us``: of a published row with the same chip, dtypes and sizes, and ``source`` names that
    row."""

    name: str
    modelled_us: float
    measured_us: float | None = None
    source: str = ""

    def against(self, source: str) -> float | None:
        """The figure that a latency of ``source`` has to beat: nothing modelled beside what is measured. A
        kernel that is modelled has to beat a measured figure too, so that it never claims more for that."""
        if source == LatencySource.MEASURED.value:
            return self.measured_us
        return self.modelled_us if self.measured_us is None else min(self.modelled_us, self.measured_us)

    @property
    def figures(self) -> tuple[tuple[float, str], ...]:
        """Microseconds and the word for them, what is measured first."""
        modelled = (self.modelled_us, LatencySource.MODELLED.value)
        if self.measured_us is None:
            return (modelled,)
        return (self.measured_us, LatencySource.MEASURED.value), modelled


def rival_of(task: KernelTask, device: Device) -> Rival | None:
    """The function that the task is with what it takes on the device, None where it is none; a vendor that
    is known makes Ascend chips."""
    # the language server shows rivals from its start on, and looks for one only in a package of a file
    from evokernel_core.hardware.ascend.chip import Chip
    from evokernel_core.hardware.ascend.eager import rival_us
    from evokernel_core.vendor.recognise import recognised

    result = recognised(task)
    if result is None or not isinstance(device, Chip):
        return None
    modelled = rival_us(task, device)
    row = next((row for row in published() if _is_row(row, result, task, device)), None)
    if row is None:
        return Rival(result.name, modelled)
    return Rival(result.name, modelled, row.us, row.source)


def _is_row(row: Published, found: Recognised, task: KernelTask, device: Device) -> bool:
    """Whether a row is the call: the same operands in the same order, and the same arguments."""
    if row.operator != found.function.operator or row.chip != device.name:
        return False
    inputs = {operand.name: operand for operand in task.graph.inputs if operand.kind is not InputKind.SCALAR}
    given = dict(found.arguments)
    used = [inputs[text[1:-1]].spec for text in given.values() if text[1:-1] in inputs]
    operands = tuple((spec.sizes(task.sizes), spec.dtype) for spec in used)
    choices = {name: value for name, value in row.arguments.items() if name in given and name != "eps"}
    return operands == row.tensors and all(given[name] == str(value) for name, value in choices.items())


_ROWS = Path(__file__).parent / "published.jsonl"


@frozen
class Published:
    """One measurement: microseconds of an operator's task on a chip. ``shapes`` and ``dtypes`` are those of
    its operands in their order, None for one that is absent; a list of shapes is a list of tensors. The
    versions of the toolkit that the rows come from are not stated there."""

    id: str
    operator: str
    chip: str
    shapes: tuple[Any, ...]
    dtypes: tuple[str | None, ...]
    arguments: Mapping[str, Any] = field(hash=False)
    us: float
    source: str

    @property
    def tensors(self) -> tuple[tuple[tuple[int, ...], str], ...]:
        """Shape and dtype of each tensor that is there, lists taken apart."""
        result: list[tuple[tuple[int, ...], str]] = []
        dtypes = self.dtypes * len(self.shapes) if len(self.dtypes) == 1 else self.dtypes
        for shape, dtype in zip(self.shapes, dtypes, strict=False):
            several = shape if shape and isinstance(shape[0], tuple) else [shape]
            if shape is not None and dtype is not None:
                result += [(one, dtype) for one in several]
        return tuple(result)


@lru_cache(maxsize=1)
def published() -> tuple[Published, ...]:
    """Every row that the product carries; each names its source."""
    return tuple(_row(json.loads(line)) for line in _ROWS.read_text("utf-8").splitlines())


def _row(data: Mapping[str, Any]) -> Published:
    shapes, dtypes = _tuples(data["shapes"]), tuple(data["dtypes"])
    return Published(**{**data, "shapes": shapes, "dtypes": dtypes})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
