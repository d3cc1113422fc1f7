"""Kernel sources: any target and files survive the way to JSON and back under one id, and those of before a
source named its target are read under the id that they had."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Mapping
from typing import Any

import pytest
from cattrs.errors import BaseValidationError
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.domain import earlier_sources
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.files import MOST_FILES, Files
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.serial import canonical_json, dumps, from_data, loads, to_data
from evokernel_core.targets.ascendc.source import KERNEL, TARGET, TILING, ascendc_source
from evokernel_core.targets.sources import FILES, main_first, require_known

STRATEGY = Strategy("model", {"tile": 8})
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.sampled_from([TILING, KERNEL, "kernel.py", "a", "b.h"])
sources = st.builds(
    KernelSource,
    st.sampled_from(["ascendc", "triton", "numpy"]),
    st.dictionaries(names, texts, min_size=1, max_size=3),
    st.just(STRATEGY),
)


@given(sources)
def test_a_source_survives_json(source: KernelSource) -> None:
    for again in (
        loads(dumps(source), KernelSource),
        from_data(json.loads(canonical_json(source)), KernelSource),
    ):
        assert (again, again.source_id, hash(again)) == (source, source.source_id, hash(source))
    assert list(loads(dumps(source), KernelSource).files) == list(source.files)
    assert pickle.loads(pickle.dumps(source)) == source


@given(sources, sources)
def test_other_kernels_have_other_ids(first: KernelSource, second: KernelSource) -> None:
    """Also where texts run into each other, or stand in files of other names."""
    same = (first.target, first.files) == (second.target, second.files)
    assert (first.source_id == second.source_id) == same


@given(texts, texts)
def test_a_kernel_of_before_keeps_its_id(tiling: str, kernel: str) -> None:
    """It is a key in memories, packages, queues and logs."""
    old = {"tiling_h": tiling, "op_kernel_cpp": kernel, "strategy": to_data(STRATEGY)}
    source = from_data(old, KernelSource)
    assert source == ascendc_source(tiling, kernel, STRATEGY)
    assert source.source_id == hashlib.sha256(f"{len(tiling)}\n{tiling}{kernel}".encode()).hexdigest()
    turned = KernelSource(TARGET, {KERNEL: kernel, TILING: tiling}, STRATEGY)
    assert (turned, turned.source_id) == (source, source.source_id)
    assert earlier_sources.flat(to_data(source)) == old


def test_what_the_earlier_form_says_is_what_the_target_says() -> None:
    assert (earlier_sources.TARGET, set(earlier_sources.NAMES)) == (TARGET, set(FILES[TARGET]))


def test_a_kernel_of_another_target_has_no_earlier_form() -> None:
    data = to_data(KernelSource("triton", {"kernel.py": "x"}, STRATEGY))
    assert earlier_sources.flat(data) == data


@pytest.mark.parametrize(
    "files",
    [
        {},
        {f"f{number}": "" for number in range(MOST_FILES + 1)},
        {"../x": ""},
        {"a/b": ""},
        {"": ""},
        {".": ""},
        {"..": ""},
        {".hidden": ""},
        {"a\nb": ""},
        {"ä": ""},
        {"x" * 65: ""},
        {"a": None},
        {"a": b""},
        {1: ""},
    ],
    ids=str,
)
def test_what_is_no_file_is_refused(files: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Files(files)
    with pytest.raises(BaseValidationError):
        from_data({"target": "ascendc", "files": files, "strategy": to_data(STRATEGY)}, KernelSource)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"files": {"a": ""}},
        {"target": 3, "files": {"a": ""}},
        {"target": "ascendc"},
        {"tiling_h": ""},
        {"op_kernel_cpp": ""},
        {"tiling_h": 1, "op_kernel_cpp": ""},
        {"target": "ascendc", "files": ["a"]},
    ],
    ids=str,
)
def test_what_is_no_source_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises((BaseValidationError, LookupError)):
        from_data({"strategy": to_data(STRATEGY), **data}, KernelSource)


def test_files_are_frozen() -> None:
    given = {"a": "1"}
    source = KernelSource("numpy", given, STRATEGY)
    given["a"] = "2"
    with pytest.raises(TypeError):
        source.files["a"] = "2"  # type: ignore[index]
    changed = source.with_files({"a": "2"})
    assert (dict(source.files), dict(changed.files)) == ({"a": "1"}, {"a": "2"})
    assert changed.source_id != source.source_id


@pytest.mark.parametrize(
    ("target", "files", "words"),
    [
        (
            "numpy",
            {"kernel.py": ""},
            "The target 'numpy' is not known here; update EvoKernel, or use one of",
        ),
        ("\n" * 100, {"a": ""}, "is not known here"),
        (TARGET, {TILING: ""}, "has the files tiling.h and op_kernel.cpp, and this one has tiling.h;"),
        (TARGET, {TILING: "", KERNEL: "", "a": ""}, "and this one has tiling.h and op_kernel.cpp and a;"),
        (TARGET, {"kernel.py": ""}, "this one has kernel.py; give exactly those."),
    ],
)
def test_an_unknown_target_is_refused_in_a_sentence(
    target: str, files: Mapping[str, str], words: str
) -> None:
    with pytest.raises(UsageError) as raised:
        require_known(KernelSource(target, files, STRATEGY))
    assert words in str(raised.value) and str(raised.value).endswith(".") and "\n" not in str(raised.value)


def test_the_device_code_is_read_first() -> None:
    assert main_first(FILES[TARGET]) == (KERNEL, TILING)
