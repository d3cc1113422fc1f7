"""The package ``evokernel_core.ascendc`` says where its modules went."""

from __future__ import annotations

import importlib

import pytest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("kernels.registry", "targets.ascendc.kernels.registry"),
        ("author", "targets.ascendc.author"),
        ("shapes.sizes", "compiler.shapes.sizes"),
        ("lowering.plan", "compiler.lowering.plan"),
        ("rewrites.pooling", "compiler.rewrites.pooling"),
        ("print.package", "package.write"),
        ("print.reference", "package.reference"),
        ("kernels.matmul.problem", "compiler.problems.products"),
        ("kernels.scan.problem", "compiler.problems.scan"),
    ],
)
def test_an_old_name_is_the_new_module(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"is evokernel_core\.{new} now; import that\.$"):
        module = importlib.import_module(f"evokernel_core.ascendc.{old}")
    assert module is importlib.import_module(f"evokernel_core.{new}")


def test_what_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match="There is no module"):
        importlib.import_module("evokernel_core.ascendc.nothing")
