"""Packages that call a function of torch_npu in a kernel's place, under the same guards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.region import Region
from evokernel_core.domain.serial import to_data
from evokernel_core.domain.task import KernelTask
from evokernel_core.package import call_site
from evokernel_core.package.integrity import MANIFEST, sealed
from evokernel_core.package.reference import python_name, statements
from evokernel_core.package.schema import schema_arguments, schema_results
from evokernel_core.package.write import (
    FORMAT,
    Placed,
    kernel_name,
    place_package,
    placed,
    render,
    trial_context,
)
from evokernel_core.vendor.recognise import Recognised, recognised

_DEVICE = {"is_there": "guards.ON_NPU", "only": "the kernel runs on an Ascend NPU only", "device": '"npu"'}


def write_vendor_package(root: Path, region: Region, chip: str) -> Path:
    """Write ``root/evokernel_kernels/NAME`` for the function of torch_npu that the region is; a package in
    its place is replaced. Raises UsageError where it is none, OSError where the folder cannot be
    written."""
    result = recognised(region.task) if region.task is not None else None
    if region.task is None or result is None:
        raise UsageError("The code of {symbol} is no function of torch_npu.", symbol=region.symbol)
    place = placed(region)
    name = vendor_name(region.task, place, result)
    return place_package(
        root, name, _files(name, region.task, place, result, _manifest(name, region, result, chip))
    )


def vendor_name(task: KernelTask, place: Placed, operator: Recognised) -> str:
    """The package's name: the function's with the head of a hash, such as ``npu_rms_norm_3f9a1c2b``."""
    return f"{operator.function.name}_{kernel_name(task, place.site)[-8:]}"


def _files(
    name: str, task: KernelTask, place: Placed, operator: Recognised, manifest: dict[str, Any]
) -> dict[str, str]:
    names = {operand.name: python_name(operand.name) for operand in task.graph.inputs}
    arguments = ", ".join(names.values())
    schema = {
        "name": name,
        "lists": False,
        "schema_arguments": schema_arguments(task),
        "schema_results": schema_results(task),
    }
    files = {
        "reference.py": render("reference.py", name=name, arguments=arguments, body=statements(task)),
        "test_op.py": render("test_op.py", **schema, **trial_context(task), **_DEVICE),
        "__init__.py": render(
            "vendor.py",
            **schema,
            function=operator.function.name,
            arguments=arguments,
            call=operator.call(names),
            results=_results(operator),
        ),
        "call.py": render(
            "call.py",
            name=name,
            file=place.file,
            symbol=place.symbol,
            **call_site.context(task, place.site, operator.limits(names)),
        ),
    }
    return {**files, MANIFEST: sealed(manifest, files)}


def _results(operator: Recognised) -> str:
    """The task's results among the function's."""
    if len(operator.function.results) == 1 and not operator.function.several:
        return "computed"
    return ", ".join(f"computed[{index}]" for index in operator.results)


def _manifest(name: str, region: Region, operator: Recognised, chip: str) -> dict[str, Any]:
    """Like a kernel's, without a verdict: no verifier runs a function of torch_npu."""
    assert region.task is not None
    names = {operand.name: operand.expression or operand.name for operand in region.task.graph.inputs}
    return {
        "format": FORMAT,
        "name": name,
        "task_id": region.task.task_id,
        "chip": chip,
        "vendor": {"function": operator.name, "call": operator.call(names)},
        "call": {
            **to_data(placed(region)),
            "guards": [guard.condition for guard in placed(region).site.guards],
        },
        "task": to_data(region.task),
        "region": to_data(region),
    }
