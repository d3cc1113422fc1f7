"""Triton-ascend's front: jit functions to linalg, without CANN and without an NPU.

    python child ascend REQUEST.json

REQUEST.json is that of ``compile.py``, with ``chip`` in place of the architecture. It leaves what becomes of
each launch in ``folder``, and as ``result.json`` there ``{"triton", "launches": [{"linalg": name}]}`` or
``{"error", "kernel"}``.
"""

from __future__ import annotations

import importlib
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from .compile import answer, each_launch, module_of

VERSIONS = ("3.2",)
"""Whose internal functions are those that ``Front`` calls."""
_TYPES = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint8": "u8",
    "bool": "i1",
}


class Front:
    """The front for one chip, and the jit functions of one file."""

    def __init__(self, request: dict[str, Any]) -> None:
        self._ascend: Any = importlib.import_module("triton.backends.ascend.compiler")
        self._source: Any = importlib.import_module("triton.compiler.compiler").ASTSource
        self._ir: Any = importlib.import_module("triton._C.libtriton").ir
        target = importlib.import_module("triton.backends.compiler").GPUTarget("npu", request["chip"], 0)
        self._backend = self._ascend.AscendBackend(target)
        self._functions = module_of(Path(request["file"]))
        self._folder, self._count = Path(request["folder"]), 0
        tempfile.TemporaryDirectory = _Folder  # type: ignore[assignment,misc]

    def compiled(self, launch: dict[str, Any]) -> dict[str, Any]:
        """One launch as linalg, in a file of its own."""
        function = getattr(self._functions, launch["kernel"])
        names = (parameter.name for parameter in function.params)
        signature = {name: _type(given) for name, given in zip(names, launch["arguments"], strict=False)}
        options = self._backend.parse_options({"num_warps": launch["warps"]})
        context = self._ir.context()
        self._ir.load_dialects(context)
        self._backend.load_dialects(context)
        generated = self._backend.get_codegen_implementation(), self._backend.get_module_map()
        source = self._source(function, signature, dict(launch["constants"]))
        about = {"hash": "", **options.__dict__}
        lowered = self._ascend.make_ttir(source.make_ir(options, *generated, context), about, options)
        name, self._count = f"{self._count}.mlir", self._count + 1
        text = self._lowered(lowered, about, options)
        (self._folder / name).write_text(text)
        return {"linalg": name}

    def _lowered(self, module: Any, about: dict[str, Any], options: Any) -> str:
        """The front's own text. Raises ValueError with what its program says against a kernel."""
        try:
            return str(self._ascend.ttir_to_linalg(module, about, options, named_ops=True))
        except subprocess.CalledProcessError as error:
            said = (error.stderr or b"").decode(errors="replace").strip() or str(error)
            raise ValueError(said[:2000]) from None


class _Folder:
    """The folder of the request for what the front makes: the sandbox lets it make no other."""

    def __enter__(self) -> str:
        return tempfile.gettempdir()

    def __exit__(self, *_: object) -> None:
        """Nothing is removed."""


def _type(argument: dict[str, Any]) -> str:
    if "tensor" in argument:
        return "*" + _TYPES[argument["tensor"]]
    if "int" in argument:
        return "i32" if -(1 << 31) <= argument["int"] < 1 << 31 else "i64"
    return "fp32"


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Lowers all launches up to the first that the front refuses."""
    return each_launch(request, VERSIONS, Front)


def main(arguments: list[str]) -> None:
    """Answers a request of launches to be lowered."""
    answer(arguments, run)
