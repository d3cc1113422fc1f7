"""Compiles launches of jit functions to cubins, without a GPU.

    python child compile REQUEST.json

REQUEST.json: ``{"file", "architecture", "threads_per_warp", "folder", "launches": [{"kernel", "arguments":
[{"tensor": dtype} or {"int": n} or {"float": x}], "constants": {name: n}, "warps", "stages"}]}``. It leaves
cubins in ``folder`` and, as ``result.json`` there, ``{"triton", "launches"}`` or ``{"error", "kernel"}``.

Each launch is specialised by Triton's own code as its JIT would do it: an argument equal to 1 becomes a
constant, integers and addresses that 16 divides are marked so, and integers are of 32 or 64 bits by their
value. Addresses are taken to be multiples of 16, as those of all tensors that PyTorch allocates are.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import resource
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .cubin import Cubin

VERSIONS = ("3.6", "3.7", "3.8", "3.9")
"""Whose internal functions are those that ``specialised`` calls."""


class Dtype:
    """Stands for a dtype of torch, which is not imported here: Triton asks only for its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __str__(self) -> str:
        return f"torch.{self._name}"

    __repr__ = __str__

    def __hash__(self) -> int:
        return hash(self._name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dtype) and other._name == self._name


class Specialiser:
    """Triton for one architecture, and the jit functions of one file."""

    def __init__(self, request: dict[str, Any]) -> None:
        self._jit: Any = importlib.import_module("triton.runtime.jit")
        self._triton: Any = importlib.import_module("triton.compiler")
        gpu: Any = importlib.import_module("triton.backends.compiler").GPUTarget
        self._target = gpu("cuda", request["architecture"], request["threads_per_warp"])
        self._backend = self._triton.make_backend(self._target)
        self._functions = module_of(Path(request["file"]))
        self._folder = Path(request["folder"])
        self._known: dict[str, dict[str, Any]] = {}
        _keep_files_in(self._folder)
        tempfile.NamedTemporaryFile = _temporary  # type: ignore[assignment]

    def compiled(self, launch: dict[str, Any]) -> dict[str, Any]:
        """One launch: its cubin's name, what a driver must know of it, and which arguments are left."""
        function = getattr(self._functions, launch["kernel"])
        options, signature, constants, attributes = self._specialised(function, launch)
        key = repr((launch["kernel"], signature, constants, attributes, options))
        if key not in self._known:
            source = self._triton.ASTSource(function, signature, constants, attributes)
            kernel = self._triton.compile(source, target=self._target, options=options.__dict__)
            self._known[key] = self._written(kernel)
        types = [kind for kind in signature.values() if kind != "constexpr"]
        kept = [place for place, kind in enumerate(signature.values()) if kind != "constexpr"]
        return {**self._known[key], "types": types, "kept": kept}

    def _specialised(self, function: Any, launch: dict[str, Any]) -> Any:
        given = {"num_warps": launch["warps"], "num_stages": launch["stages"]}
        given |= {"debug": False, "instrumentation_mode": "", **launch["constants"]}
        bind = self._jit.create_function_from_signature(function.signature, function.params, self._backend)
        arguments, specialisation, options = bind(*map(self._argument, launch["arguments"]), **given)
        return function._pack_args(self._backend, given, arguments, specialisation, options)

    def _argument(self, argument: dict[str, Any]) -> Any:
        if "tensor" in argument:
            return self._jit.MockTensor(Dtype(argument["tensor"]))
        return int(argument["int"]) if "int" in argument else float(argument["float"])

    def _written(self, kernel: Any) -> dict[str, Any]:
        data, about = kernel.asm["cubin"], kernel.metadata
        name = f"{hashlib.sha256(data).hexdigest()[:24]}.cubin"
        (self._folder / name).write_bytes(data)
        registers, local = Cubin(data).functions().get(about.name, (0, 0))
        return {
            "cubin": name,
            "function": about.name,
            "shared_bytes": about.shared,
            "registers": registers,
            "local_bytes": local,
            "warps": about.num_warps,
            "clusters": about.num_ctas,
            "cooperative": bool(about.launch_cooperative_grid),
            "scratch_bytes": about.global_scratch_size,
            "scratch_align": about.global_scratch_align,
            "profile_bytes": getattr(about, "profile_scratch_size", 0),
        }


def _keep_files_in(folder: Path) -> None:
    """Triton writes what it makes on its way into this folder, and makes no folders of its own."""
    cache: Any = importlib.import_module("triton.runtime.cache")
    knobs: Any = importlib.import_module("triton.knobs")

    class Flat(cache.CacheManager):  # type: ignore[misc]  # a class of Triton's
        def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
            self._key = key[:16]

        def get_file(self, filename: str) -> None:
            """Nothing is used again."""

        def get_group(self, filename: str) -> None:
            """Nothing is used again."""

        def put(self, data: object, filename: str, binary: bool = True) -> str:
            path = folder / f"{self._key}-{filename}"
            path.write_bytes(data if isinstance(data, bytes) else str(data).encode())
            return str(path)

        def put_group(self, filename: str, group: dict[str, str]) -> None:
            """The files are enough."""

    knobs.cache.manager_class = Flat


def _temporary(mode: str = "w+b", *, suffix: str = "", delete: bool = True, **_: Any) -> Any:
    """A file for Triton and its assembler, which ends with the folder. Python's own opens one so that it must
    then set a flag of it, by a call that the sandbox refuses."""
    descriptor, name = tempfile.mkstemp(suffix)
    os.close(descriptor)
    return Path(name).open(mode if "+" in mode else mode[0] + "+" + mode[1:])


def module_of(path: Path) -> Any:
    """The candidate's file as a module; Triton reads the functions' text from it."""
    spec = importlib.util.spec_from_file_location("candidate", path)
    if spec is None or spec.loader is None:
        raise ImportError(str(path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words(error: BaseException) -> str:
    """The last lines of what Triton says against a text, and those of what it came from."""
    said: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(said) < 4:
        said.append(f"{type(cause).__name__}: {cause}")
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return "\n".join(said)[:4000]


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Compiles all launches up to the first that does not compile."""
    return each_launch(request, VERSIONS, Specialiser)


def each_launch(request: dict[str, Any], versions: tuple[str, ...], opened: Any) -> dict[str, Any]:
    """What ``opened(request).compiled`` makes of launches in turn, up to the first that Triton refuses."""
    version: str = importlib.import_module("triton").__version__
    if not version.startswith(versions):
        return {"unavailable": version}
    kernel = ""
    try:
        compiler = opened(request)
        launches = []
        for launch in request["launches"]:
            kernel = launch["kernel"]
            launches.append(compiler.compiled(launch))
    except Exception as error:
        return {"triton": version, "error": words(error), "kernel": kernel}
    return {"triton": version, "launches": launches}


def _limit(limits: dict[str, int]) -> None:
    """Before anything of the candidate is read; what a launcher has set lower stays."""
    kinds = {"address_space": "RLIMIT_AS", "cpu_s": "RLIMIT_CPU", "file_size": "RLIMIT_FSIZE"}
    for name, value in limits.items():
        kind = getattr(resource, kinds[name])
        hard = resource.getrlimit(kind)[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (least, least))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end_with_input() -> None:
    while os.read(0, 4096):  # not by sys.stdin, whose lock would be held when this process ends
        pass
    os._exit(1)


def _begin(limits: dict[str, int]) -> None:
    """The process ends with its input, a lifeline, and has limits before it reads any of the candidate."""
    threading.Thread(target=_end_with_input, daemon=True).start()
    _limit(limits)


def answer(arguments: list[str], run: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Reads the request, does what it asks and leaves the result."""
    request = json.loads(Path(arguments[0]).read_text())
    _begin(request["limits"])
    try:
        result = run(request)
    except ImportError as error:
        result = {"missing": str(error)}
    (Path(request["folder"]) / "result.json").write_text(json.dumps(result))


def main(arguments: list[str]) -> None:
    """Answers a request of launches to be compiled."""
    answer(arguments, run)
