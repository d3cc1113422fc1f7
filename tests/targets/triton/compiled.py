"""A child process that compiles kernels by their launch records for a GPU that is not there.

A request: ``folder`` with kernel.py and launch.json; ``sizes``; ``dtypes`` by tensor name.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import traceback
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from evokernel_core.targets.triton.expressions import evaluate
from evokernel_core.targets.triton.launch import read_launches

TYPES = {"float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "int64": "i64",
         "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "i1"}  # fmt: skip


def answer(request: dict[str, Any]) -> None:
    folder, sizes = Path(request["folder"]), request["sizes"]
    record = read_launches((folder / "launch.json").read_text())
    spec = importlib.util.spec_from_file_location(folder.name, folder / "kernel.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    dtypes = {**request["dtypes"], **{one.name: one.dtype for one in record.scratch}}
    for launch in record.launches:
        function = getattr(module, launch.kernel)
        signature: dict[str, str] = {}
        constants: dict[str, Any] = {}
        for name, word in zip(function.arg_names, launch.arguments, strict=False):
            if word in dtypes:
                signature[name] = f"*{TYPES[dtypes[word]]}"
            else:
                signature[name] = "i64" if evaluate(word, sizes) >= 2**31 else "i32"
        for name, value in launch.constants_at(sizes).items():
            signature[name] = "constexpr"
            constants[name] = value
        options = {"num_warps": launch.warps, "num_stages": launch.stages}
        built = triton.compile(
            ASTSource(function, signature, constants), target=GPUTarget("cuda", 90, 32), options=options
        )
        assert built.asm["cubin"]
        assert built.metadata.shared <= 232_448, built.metadata.shared


def main() -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            answer(json.loads(line))
            print(json.dumps(""), flush=True)
        except Exception:
            print(json.dumps(traceback.format_exc()), flush=True)


main()
