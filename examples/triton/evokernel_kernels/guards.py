"""What the guards of generated kernels ask.

A guard that fails costs nothing but the kernel: the original code runs. With the environment variable
EVOKERNEL_EMULATE=1 tensors on a CPU are taken as an NPU's or a GPU's, and every kernel computes what its
reference.py says: a way to test guards and edits on a machine without one. ``calls()`` then counts the kernels
that ran. With EVOKERNEL_REPORT=1 a program says when it ends which kernels ran, and why others did not.
"""

from __future__ import annotations

import ast
import builtins
import copy
import ctypes
import functools
import importlib
import importlib.util
import itertools
import json
import math
import os
import sys
import textwrap
import types
import warnings
from collections import Counter
from hashlib import sha256
from pathlib import Path

import torch
import torch.autograd.forward_ad as _forward_ad
import torch.fx._symbolic_trace as _fx
import torch.nn.modules.module as layers
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._device import DeviceContext

EMULATED = os.environ.get("EVOKERNEL_EMULATE") == "1"
DEVICE = "cpu" if EMULATED else "npu"
ON_NPU = hasattr(torch, "npu") and torch.npu.is_available()
CHANGED = (AttributeError, LookupError, TypeError, ValueError, RuntimeError)
"""What reading a part that is not there raises."""
_TENSORS = (torch.Tensor, torch.nn.Parameter, FakeTensor)
_TORCH = str(Path(torch.__file__).parent)
# What every call asks, without the way through its modules.
_is_compiling, _is_autocast = torch.compiler.is_compiling, torch.is_autocast_enabled
_is_grad_enabled, _default_dtype, _is_tracing = torch.is_grad_enabled, torch.get_default_dtype, torch._C._is_tracing
_is_exporting = getattr(torch.compiler, "is_exporting", _is_compiling)
_transform = torch._C._functorch.peek_interpreter_stack
_dispatch_modes, _function_modes = torch._C._len_torch_dispatch_stack, torch._C._len_torch_function_stack
_libraries = {}
_hosts = {}
"""The modules that launch kernels of Triton, by the kernel's name."""
_failed = set()
"""Kernels that Triton could not compile for the device."""
_borrowed = set()
"""Kernels that are functions of torch_npu."""
_calls = Counter()


def calls():
    """How often each kernel ran, by name; counted under emulation only."""
    return dict(_calls)


def intact(package):
    """Whether the files of a package are the ones that were verified; where not, nothing else of it runs."""
    folder = Path(package).resolve().parent
    try:
        files = json.loads((folder / "kernel.json").read_text())["files"]
        changed = [name for name, known in files.items() if _sha256(folder / name) != known]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        changed = ["kernel.json"]
    if changed:
        warnings.warn(
            f"{folder.name}/{changed[0]} was changed after it was verified; the original code runs: restore "
            f"the file, make the kernel again, or verify it with `evokernel verify --changed {folder}`.",
            stacklevel=3,
        )
    return not changed


def _sha256(path):
    return sha256(path.read_bytes()).hexdigest()


def refused(*arguments, **named):
    """``holds`` of a package that was changed: never."""
    return False


def register(package, name, schema, reference, host=None):
    """Make the operator known: that of the built library, or that which the module ``host`` launches, or under
    emulation its reference."""
    if hasattr(torch.ops.evokernel, name):
        return
    library = Path(package).parent / "build" / f"lib{name}.so"
    if EMULATED:
        _emulate(name, schema, reference)
    elif library.is_file() and ON_NPU and _is_built(library):
        torch.ops.load_library(str(library))
        _libraries[name] = ctypes.CDLL(str(library))
        _derive(name, schema, reference)
    elif host is not None and has_gpu():
        _launch(name, schema, reference, host)


def has_gpu():
    """Whether a GPU is there for kernels of Triton, and Triton with it."""
    if torch.version.hip is not None or importlib.util.find_spec("triton") is None:
        return False
    return torch.cuda.device_count() > 0  # unlike is_available this leaves CUDA usable in forked processes


def device(name):
    """The type of the device that a kernel runs on here."""
    return "cuda" if name in _hosts else DEVICE


def _launch(name, schema, reference, host):
    """Make an operator known whose kernels Triton compiles when they are first launched."""
    try:
        launches = importlib.import_module(host)
        errors = importlib.import_module("triton.errors").TritonError
    except (ImportError, AttributeError) as error:
        warnings.warn(
            f"The kernel {name} needs a newer triton ({error}); the original code runs: update triton.", stacklevel=4
        )
        return
    torch.library.define(f"evokernel::{name}", schema)
    torch.library.impl(f"evokernel::{name}", "CUDA")(_launched(name, reference, launches.run, errors))
    torch.library.impl(f"evokernel::{name}", "Meta")(launches.results)
    _hosts[name] = launches
    _derive(name, schema, reference)


def _launched(name, reference, run, errors):
    """The operator; where Triton cannot compile a kernel for a device, as one with less memory on its chip, it
    computes what the reference says, and further calls run the original code."""

    def launched(*arguments):
        if name not in _failed:
            try:
                with torch._C._AutoDispatchBelowAutograd():
                    return run(*arguments)
            except errors as error:
                _failed.add(name)
                line = next(iter(str(error).strip().splitlines()), type(error).__name__)
                warnings.warn(
                    f"Triton cannot compile the kernel {name} for this device ({line}); the original code runs: "
                    "make the kernel again for this device.",
                    stacklevel=2,
                )
        return _dense(reference(*arguments))

    return launched


def _is_built(library):
    """Whether a library is the one that CMakeLists.txt built, from the files beside it now."""
    folder = library.parents[1]
    files = (library, *(folder / name for name in ("op_kernel.cpp", "op_torch.cpp", "tiling.h")))
    try:
        built = (library.parent / f"{library.name}.built").read_text().split() == [*map(_sha256, files)]
    except (OSError, ValueError):
        built = False
    if not built:
        warnings.warn(
            f"{folder.name}/build/{library.name} is not what was built from the files beside it; the original "
            f"code runs: remove {library.parent} and build the kernel again.",
            stacklevel=4,
        )
    return built


def borrow(name, schema, reference, function, call):
    """Make an operator known that calls a function of torch_npu: where that is, or under emulation."""
    if hasattr(torch.ops.evokernel, name):
        return
    if EMULATED:
        _emulate(name, schema, reference)
    elif ON_NPU and callable(getattr(sys.modules.get("torch_npu"), function, None)):
        torch.library.define(f"evokernel::{name}", schema)
        torch.library.impl(f"evokernel::{name}", "PrivateUse1")(call)
        torch.library.impl(f"evokernel::{name}", "Meta")(reference)
        _borrowed.add(name)
        _derive(name, schema, reference)


def _emulate(name, schema, reference):
    def emulated(*arguments):
        _calls[name] += 1
        with torch._C._AutoDispatchBelowAutograd():  # as on an NPU, where the operator has no derivative
            result = reference(*arguments)
        with torch.no_grad():  # below autograd a copy is a tensor that was written to
            return _dense(result)

    torch.library.define(f"evokernel::{name}", schema)
    torch.library.impl(f"evokernel::{name}", "default")(emulated)
    _derive(name, schema, reference)


DERIVED = "_with_gradient"
"""What the name of an operator ends with that takes gradients, too."""


def _derive(name, schema, reference):
    """Make an operator known for graphs that are exported: they have no guards, and may be called for gradients
    later, which are those of the reference. A call in Python asks a guard, and is spared the way through this."""
    kernel, derived = getattr(torch.ops.evokernel, name), f"evokernel::{name}{DERIVED}"

    def differentiable(*arguments):
        if _is_grad_enabled() and any(tensor.requires_grad for tensor in _tensors(arguments)):
            return _dense(reference(*arguments))
        with torch._C._AutoDispatchBelowAutograd():
            return kernel(*arguments)

    torch.library.define(derived, schema)
    torch.library.impl(derived, "default")(kernel)
    torch.library.impl(derived, "Autograd")(differentiable)


def _tensors(arguments):
    for argument in arguments:
        if isinstance(argument, torch.Tensor):
            yield argument
        elif isinstance(argument, (tuple, list)):
            yield from _tensors(argument)


def operator(name):
    """The operator of a kernel: where a graph is exported, the one that takes gradients, too."""
    return getattr(torch.ops.evokernel, f"{name}{DERIVED}" if _is_exporting() else name)


def _dense(result):
    """Results as a kernel gives them: new, contiguous tensors."""
    if isinstance(result, torch.Tensor):
        return result.clone(memory_format=torch.contiguous_format)
    return tuple(_dense(element) for element in result)


def ready(package, name, file, symbol, original, code):
    """Whether the kernel can run here, and the code that it stands for is what it was made from."""
    if not hasattr(torch.ops.evokernel, name):
        return False
    root = Path(package).resolve().parents[2]
    for place in (f"{file}:", *code):
        _note_functions(root / place.rpartition(":")[0])
    changed = _changed(root, file, symbol, original, code)
    if not changed and not stands(_tree(root / file), name, original):
        changed = f"{symbol} in {file}"
    if changed:
        warnings.warn(
            f"{changed} changed since the kernel {name} was made from it, so the original code runs: "
            "make the kernel again, or revert it.",
            stacklevel=2,
        )
    return not changed


def _changed(root, file, symbol, original, code):
    """The first function that is not what it was, empty if all are."""
    texts = {}
    for place in (f"{file}:{symbol}", *code):
        path, _, function = place.rpartition(":")
        if path not in texts:
            texts[path] = _functions(root / path)
        bodies = texts[path].get(function, [])
        if not bodies or (place in code and code[place] not in map(_digest, bodies)):
            return f"{function} in {path}"
    same = any(_plain(original) in _plain(text) for text in texts[file][symbol])
    return "" if same else f"{symbol} in {file}"


def _functions(path):
    """The texts of each function of a file, by qualified name: one that is overloaded has several."""
    tree = _tree(path)
    if tree is None:
        return {}
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    bodies = {}
    for name, first, node in _named_functions(tree):
        bodies.setdefault(name, []).append("\n".join(lines[first - 1 : node.end_lineno]))
    return bodies


def _named_functions(node, prefix=""):
    """The qualified name, the first line and the tree of each function."""
    lambdas = itertools.count()
    for child in _below(node):
        name = prefix + (f"<lambda {next(lambdas)}>" if isinstance(child, ast.Lambda) else child.name)
        if not isinstance(child, ast.ClassDef):
            first = min([child.lineno, *(decorator.lineno for decorator in getattr(child, "decorator_list", ()))])
            yield name, first, child
        yield from _named_functions(child, f"{name}.")


def _tree(path):
    try:
        return ast.parse(path.read_text(encoding="utf-8-sig"))
    except (OSError, SyntaxError):
        return None


def stands(tree: ast.Module, name: str, original: str) -> bool:
    """Whether what runs where a kernel's guard fails is still the original code, at every guard that is
    found: code that was added to, as in `return x * 2`, holds its text too."""
    wanted = _statements(original)
    if wanted is None:
        return True
    dumps = _unguarded_dumps(wanted)
    return all(_unguarded_dumps(place)[: len(dumps)] == dumps for place in _fallbacks(tree, name))


def _statements(code: str) -> list[ast.stmt] | None:
    """Code that was cut out of a file, whose first line lost its indentation; None where it is unreadable."""
    if not code.strip():
        return None
    first, _, rest = code.strip().partition("\n")
    rest = textwrap.dedent(rest)
    for text in (f"(\n{code}\n)", f"{first}\n{rest}", f"{first}\n{textwrap.indent(rest, '    ')}"):
        try:
            return ast.parse(text).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def _fallbacks(tree: ast.Module, name: str) -> Iterator[list[ast.stmt]]:
    """The code at each guard of a kernel that runs where it fails."""
    for node in ast.walk(tree):
        if isinstance(node, ast.IfExp) and _is_guard(node.test, name):
            yield [ast.Expr(node.orelse)]
        for field in ("body", "orelse", "finalbody"):
            found = getattr(node, field, None)  # of an expression, as a lambda, it is no block
            block: list[ast.stmt] = found if isinstance(found, list) else []
            for at, statement in enumerate(block):
                if isinstance(statement, ast.If) and _is_guard(statement.test, name):
                    yield statement.orelse or block[at + 1 :]


def _is_guard(test: ast.AST, *names: str) -> bool:
    """Whether a test is the guard of a kernel: of one that is named, where any is."""
    if isinstance(test, ast.IfExp):  # False if torch.jit.is_scripting() else ...
        test = test.orelse
    call = test.func if isinstance(test, ast.Call) else None
    if not isinstance(call, ast.Attribute) or call.attr != "holds" or not isinstance(call.value, ast.Name):
        return False
    return not names or call.value.id in names


class _Unguarded(ast.NodeTransformer):
    """Takes guards out: a kernel within the code of another changes nothing of it."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        return node.orelse if _is_guard(node.test) else node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return node.orelse if _is_guard(node.test) else node


def _unguarded_dumps(statements: list[ast.stmt]) -> list[str]:
    """The syntax of each statement, without positions."""
    block = _Unguarded().visit(ast.Module(copy.deepcopy(statements), []))
    return [ast.dump(statement) for statement in block.body]


def _below(node):
    """The functions and classes that stand in a node and in no other of them, in their order."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield child
        else:
            yield from _below(child)


def _plain(source):
    """A text without white space and without comments on lines of their own."""
    lines = (line for line in source.splitlines() if not line.lstrip().startswith("#"))
    return "".join("".join(lines).split())


def _digest(source):
    return sha256(_plain(source).encode()).hexdigest()[:16]


def ordinary(dense, strided, default=torch.float32, device=DEVICE):
    """Plain tensors on one device of that type, contiguous where they were, with no gradient, autocast, transform
    or mode."""
    first = (dense or strided)[0].device
    if first.type != device or _is_autocast(device):
        return False
    if _default_dtype() is not default or _intercepted(first):
        return False
    if layers._global_forward_hooks or layers._global_forward_pre_hooks:
        return False
    for tensor in dense:
        if type(tensor) not in _TENSORS or tensor.device != first or not tensor.is_contiguous():
            return False
    for tensor in strided:
        if type(tensor) not in _TENSORS or tensor.device != first or tensor.layout is not torch.strided:
            return False
    return not _is_grad_enabled() or not _any_requires_grad(dense, strided)


def may_be_ordinary(tensors, device=DEVICE):
    """What ``ordinary`` would refuse most often, of the tensors that are there before others are computed."""
    if _is_autocast(device):
        return False
    if _is_grad_enabled():
        for tensor in tensors:
            if tensor.requires_grad:
                return False
    return tensors[0].device.type == device


def may_vary():
    """Whether results may differ in their last digits from call to call, as those of atomic additions do."""
    return not torch.are_deterministic_algorithms_enabled()


def allows_tf32(*operations):
    """Whether the program lets PyTorch compute float32 products in TF32: ``matmul`` and ``conv``."""
    if "conv" in operations and _is_compiling():  # no compiler notices that this setting changes
        return False
    for operation in operations:
        if not _allows_tf32(operation):
            return False
    return True


def _allows_tf32(operation):
    newer = getattr(torch._C, "_get_fp32_precision_getter", None)
    if newer is not None:
        return newer("cuda", operation) == "tf32"
    return torch._C._get_cublas_allow_tf32() if operation == "matmul" else torch._C._get_cudnn_allow_tf32()


# A compiler asks once, and compiles again when the setting of products changes.
_allows_tf32._dynamo_marked_constant = True


def noted():
    """Whether torch.jit.trace or torch.fx notes what the call does, for later calls that ask no guard."""
    if _is_compiling():
        return False
    return _is_tracing() or _fx._is_fx_tracing_flag


def writable(tensors):
    """Whether this may write into tensors: those that inference mode made are read-only outside of it."""
    if _is_compiling() or torch.is_inference_mode_enabled():
        return True
    return not any(tensor.is_inference() for tensor in tensors)


def apart(written, read):
    """Whether what a kernel writes is the memory of nothing else that it is given. A compiler knows of the
    tensors of one call whether they are the same, and looks after memory that they share in other ways."""
    if _is_compiling():
        return not any(tensor is other for at, tensor in enumerate(written) for other in (*written[:at], *read))
    own = {tensor.untyped_storage().data_ptr() for tensor in written}
    return len(own) == len(written) and not any(tensor.untyped_storage().data_ptr() in own for tensor in read)


def ordered(tensor, dims):
    """Whether a tensor lies in memory with these dimensions from the outermost to the innermost: results of
    PyTorch's follow the order of their operands."""
    last = None
    for dim in dims:
        step = tensor.stride(dim) if tensor.shape[dim] > 1 else 0
        if step and last is not None and step > last:
            return False
        last = step or last
    return True


def _any_requires_grad(dense, strided):
    for tensor in dense:
        if tensor.requires_grad:
            return True
    for tensor in strided:
        if tensor.requires_grad:
            return True
    return False


def _intercepted(device):
    """Whether torch.func transforms the call, as vmap does, tangents are computed with it, or a mode stands
    between it and torch that may give other results."""
    if _is_compiling():
        return False
    if _transform() is not None or _forward_ad._current_level >= 0:
        return True
    if _dispatch_modes():
        return True
    count = _function_modes()
    return count > 0 and not all(_leaves(torch._C._get_function_stack_at(at), device) for at in range(count))


def _leaves(mode, device):
    """Whether a mode leaves the call unchanged: a default device that tensors are made on without it, or that of
    the operands."""
    if type(mode) is not DeviceContext:
        return False
    default = torch.device(mode.device)
    return default.type == "cpu" or (default.type == device.type and default.index in (None, device.index))


def fits(name, sizes, numbers, captured):
    """Whether the kernel has a tiling for these sizes. While a graph is compiled only the sizes that it was
    verified with are taken, as no library can be asked."""
    if EMULATED or name in _borrowed:
        return True
    if name in _hosts:
        return (_is_compiling() or name not in _failed) and _hold(_hosts[name].limits(*sizes))
    if torch.compiler.is_compiling():
        return sizes == captured
    return _tiling(name, sizes, numbers)


def _hold(conditions):
    """Whether all hold. An exported graph, which has no guards, is only given what holds of all its sizes."""
    exports = _is_exporting()
    for condition in conditions:
        if not (_is_known(condition) if exports else condition):
            return False
    return True


def _is_known(condition):
    from torch.fx.experimental.symbolic_shapes import statically_known_true  # a compiler has imported it

    return statically_known_true(condition)


@functools.lru_cache(maxsize=4096)
def _tiling(name, sizes, numbers):
    given = (ctypes.c_int64 * max(1, len(sizes)))(*sizes)
    scalars = (ctypes.c_float * max(1, len(numbers)))(*numbers)
    question = getattr(_libraries[name], f"{name}_fits")
    question.restype = ctypes.c_bool
    return question(given, scalars)


def equal(value, expected):
    """The same value of the same type: to PyTorch 1, 1.0 and True are three things."""
    if type(value) is not type(expected):
        return False
    if type(value) is float:
        if expected != expected:
            return value != value
        return value == expected and (value != 0.0 or math.copysign(1.0, value) == math.copysign(1.0, expected))
    if isinstance(value, (tuple, list)):
        return len(value) == len(expected) and all(map(equal, value, expected))
    if type(value) is dict:  # its order too, which a loop over it sees
        return equal([*value.items()], [*expected.items()])
    if type(value) in (set, frozenset):
        return value == expected and sorted(map(repr, value)) == sorted(map(repr, expected))
    if type(value) is complex:
        return equal([value.real, value.imag], [expected.real, expected.imag])
    if type(value) is slice:
        return equal([value.start, value.stop, value.step], [expected.start, expected.stop, expected.step])
    return value == expected


def environment(name):
    """A variable of the environment, None where there is none."""
    return os.environ.get(name)


def entry(value, name):
    """An entry of an enumeration, by its name."""
    return f"{type(value).__qualname__}.{value.name}" == name


def named(value, name):
    """A function or class, by its name; of torch's with its module."""
    code = getattr(value, "__code__", None)  # which torch.compile knows the qualified name of
    if code is not None and hasattr(code, "co_qualname"):
        return code.co_qualname == name
    qualified = getattr(value, "__qualname__", None) or getattr(value, "__name__", "") or str(value)
    module = getattr(value, "__module__", "") or ""
    return name == (f"{module}.{qualified}" if module.split(".")[0] == "torch" else qualified)


def defined(value, place):
    """A function whose code stands at that place of a file beside the folder of the kernels, as in
    ``model.py:Model.__init__.<lambda 1>``: two functions may share a name."""
    code = getattr(value, "__code__", None)
    return code is not None and _is_at(code, place)


def _is_at(code, place):
    known = _places.get(id(code))
    if known is None or known[0] is not code:
        if len(_places) > _MOST_PLACES:
            _places.clear()
        known = _places[id(code)] = (code, _place(code))
    return known[1] == place


_MOST_PLACES = 4096
_places = {}
"""By identity: codes that are equal may stand in two files."""
_is_at._dynamo_marked_constant = True


def _place(code):
    """The place of a function's code, None where its file is not one that says so."""
    path = Path(code.co_filename)
    if path not in _written:
        _note_functions(path)
    name, first = code.co_name, code.co_firstlineno
    there = [place for place, own, line, node in _written[path] if (own, line) == (name, first) and _holds(node, code)]
    return there[0] if len(there) == 1 else None


def _holds(node, code):
    """Whether code stands in a lambda: several may start on one line."""
    if not isinstance(node, ast.Lambda):
        return True
    begin, end = (node.body.lineno, node.body.col_offset), (node.body.end_lineno, node.body.end_col_offset)
    spans = [span for span in code.co_positions() if None not in span and (span[0], span[2]) != (span[1], span[3])]
    return all(begin <= (line, column) and (last, behind) <= end for line, last, column, behind in spans)


_written = {}
"""The functions of each file, with their places."""


def _note_functions(path):
    """Notes them while the file is as it was imported."""
    tree, root, counts = _tree(path), Path(__file__).resolve().parents[1], Counter()
    own = path.resolve()
    file = own.relative_to(root).as_posix() if own.is_relative_to(root) else own.name
    functions = _written[path] = []
    for name, first, node in () if tree is None else _named_functions(tree):
        counts[name] += 1
        again = f"@{counts[name]}" if counts[name] > 1 else ""
        own_name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
        functions.append((f"{file}:{name}{again}", own_name, first, node))


def builtin(home, *names):
    """Whether names are Python's own in a module: a global may hide one, and a program may replace one."""
    hidden = vars(home)
    return not any(name in hidden or not _is_pythons(name) for name in names)


def _is_pythons(name):
    value = getattr(builtins, name, None)
    if not isinstance(value, types.BuiltinFunctionType) and type(value) is not type:
        return False
    return value.__module__ == "builtins" and value.__name__ == name


builtin._dynamo_marked_constant = True


def function(value, name):
    """A function of Python's library or of an installed package, by its name; a class by that of its module too."""
    code = getattr(value, "__code__", None)
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}" == name
    if code is None:
        return getattr(value, "__qualname__", getattr(value, "__name__", None)) == name
    return code.co_qualname == name


function._dynamo_marked_constant = True


def originals(*names):
    """Whether functions of torch are torch's own: a program may have put others in their places, before or
    after this was imported. ``torch.nn.functional.gelu``, with ``=NAME`` where it has another name of its own."""
    for owner, name, function in _originals.get(names, _UNKNOWN):
        if getattr(owner, name, _originals) is not function:
            return _are_original(names)
    return True


def _are_original(names):
    is_compiling = torch.compiler.is_compiling()
    if is_compiling:  # an exporter has a call of modules of its own in place meanwhile
        names = tuple(name for name in names if not name.startswith("torch.nn.Module."))
    known = [_original(name) for name in names]
    if None in known:
        return False
    if not is_compiling:
        _originals[names] = known
    return True


_UNKNOWN = ((torch, "", None),)
"""What is not there, as of names that were not asked for before."""
_originals = {}
# As torch.compiler.assume_constant_result does, without the compiler's import: a compiler asks once, as it compiles.
originals._dynamo_marked_constant = True


def _original(path):
    """The owner, the name and the function, None where that is not torch's own."""
    path, _, own = path.partition("=")
    *owners, name = path.split(".")
    owner = functools.reduce(getattr, owners[1:], torch)
    function = getattr(owner, name, None)
    if isinstance(function, (torch.dtype, torch.layout, torch.memory_format)):
        return (owner, name, function) if str(function) == f"torch.{own or name}" else None
    if getattr(function, "__name__", "") != (own or name):
        return None
    if isinstance(function, type):
        return (owner, name, function) if function.__module__.split(".")[0] == "torch" else None
    code = getattr(function, "__code__", None)
    if code is not None:
        folders = [str(Path(sys.modules[package].__file__).parent) for package in _OF_TORCH if package in sys.modules]
        return (owner, name, function) if code.co_filename.startswith(tuple(folders)) else None
    is_torchs = (getattr(function, "__module__", None) or "torch").split(".")[0] in _OF_TORCH
    return (owner, name, function) if isinstance(function, _IN_C) and is_torchs else None


_OF_TORCH = ("torch", "torch_npu")
_IN_C = (
    types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType,
)


def plain(layer, kind, file="", is_called_by_torch=True):
    """A layer of that class, whose call does nothing beside its forward. The class is one of torch's as it came,
    or given by its name and that of its file. ``is_called_by_torch``: nor has the class a call of its own."""
    own, module = type(layer), layers.Module
    if not file:
        if own is not kind or not _has_own_forward(own):
            return False
    elif own.__qualname__ != kind or not _is_of(own, file):
        return False
    if is_called_by_torch and own.__call__ is not module.__call__:
        return False
    if own._call_impl is not module._call_impl or own._compiled_call_impl is not None:
        return False
    state = layer.__dict__
    if state["_forward_hooks"] or state["_forward_pre_hooks"] or "forward" in state:
        return False
    return "_call_impl" not in state and state.get("_compiled_call_impl") is None


def holders(kind, name, places, path=""):
    """Whether the bases of a class that define a name are those at the places, counted from the end of their
    order. With a ``path`` the class is what that leads to in a module."""
    return _holders(kind, name, places, path) if kind.__name__ else False


def _holders(kind, name, places, path):
    bases = _at(kind, path).__mro__
    return places == tuple([at - len(bases) for at, base in enumerate(bases) if name in vars(base)])


_holders._dynamo_marked_constant = True


def inherits(kind, name, at, place, path=""):
    """Whether a base of a class has a function under a name whose code stands at that place. A name may go on
    to what holds the function, as in ``factor.fget``."""
    return _inherits(kind, name, at, place, path) if kind.__name__ else False


def _inherits(kind, name, at, place, path):
    name, *steps = name.split(".")
    return defined(functools.reduce(getattr, steps, vars(_at(kind, path).__mro__[at])[name]), place)


_inherits._dynamo_marked_constant = True


def holds_value(kind, name, at, value, path=""):
    """Whether a base of a class has that plain value under a name."""
    return _holds_value(kind, name, at, value, path) if kind.__name__ else False


def _holds_value(kind, name, at, value, path):
    return equal(vars(_at(kind, path).__mro__[at])[name], value)


_holds_value._dynamo_marked_constant = True


def _at(home, path):
    return functools.reduce(getattr, path.split("."), home) if path else home


def member(kind, name, at):
    """What a base of a class has under a name."""
    return vars(kind.__mro__[at])[name]


def shown(value, text):
    """An object that is written in C, by its text, which tells all of it; a compiler asks for it itself."""
    return _is_compiling() or repr(value) == text


def of(kind, name, file):
    """A class by its name and that of its file, as ``plain`` takes them."""
    return kind.__qualname__ == name and _is_of(kind, file)


def _has_own_forward(kind):
    """Whether the forward of a class of torch is the one that torch wrote for it, or for what it is made from."""
    function = kind.forward
    if _forwards.get(kind) is function:
        return True
    code = getattr(function, "__code__", None)
    first = next(base for base in kind.__mro__ if "forward" in vars(base))
    if code is None or not code.co_filename.startswith(_TORCH) or code.co_qualname != f"{first.__qualname__}.forward":
        return False
    _forwards[kind] = function
    return True


_forwards = {}
_has_own_forward._dynamo_marked_constant = True


def _is_of(kind, file):
    """Whether a class is of a file beside the folder of the kernels, under whatever name that is loaded. The
    name of a module stands for what lies elsewhere."""
    return _is_of_file(kind, file)


_is_of._dynamo_marked_constant = True


@functools.lru_cache(maxsize=4096)
def _is_of_file(kind, file):
    if not file.endswith(".py"):
        return kind.__module__.rpartition(".")[2] == file
    codes = [member.__code__ for member in vars(kind).values() if hasattr(member, "__code__")]
    # a decorator, as that of data classes, puts functions of other files there
    codes = [code.co_filename for code in codes if code.co_qualname.startswith(f"{kind.__qualname__}.")]
    codes = [name for name in codes if not name.startswith("<")]
    own = codes[0] if codes else getattr(sys.modules.get(kind.__module__), "__file__", None)
    return bool(own) and Path(own).resolve() == Path(__file__).resolve().parents[1] / file


def home(package, file):
    """The module of a file: the one that is importing the kernel, or the one that is loaded."""
    path = Path(package).resolve().parents[2] / file
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "<module>" and Path(frame.f_code.co_filename).resolve() == path:
            known = sys.modules.get(frame.f_globals.get("__name__"))
            is_known = known is not None and vars(known) is frame.f_globals
            return known if is_known else _Globals(frame.f_globals)
        frame = frame.f_back
    files = {getattr(module, "__file__", None) or "": module for module in list(sys.modules.values())}
    return next((module for name, module in files.items() if name and Path(name).resolve() == path), None)


def is_from(home):
    """Whether a call of ``holds`` comes from that module: a program may load a file twice, as ``__main__`` and by
    its name, and each time it has globals of its own."""
    if _is_compiling():
        return _is_only(home)
    return sys._getframe(2).f_globals is vars(home)


def _is_only(home):
    file = getattr(home, "__file__", None)
    others = (module for module in list(sys.modules.values()) if module is not home)
    return not file or not any(getattr(module, "__file__", None) == file for module in others)


_is_only._dynamo_marked_constant = True


class _Globals:
    """A module that is not, or not yet, among those that the program has imported."""

    def __init__(self, names):
        self.__dict__ = names


def in_module(home):
    """A function as if it stood in a module, whose globals it reads; where that is not known it is not called."""
    globals_ = {} if home is None else vars(home)
    return lambda function: types.FunctionType(function.__code__, globals_, function.__name__)


def module(name):
    """A module that the program has imported."""
    return sys.modules[name]


if os.environ.get("EVOKERNEL_REPORT") == "1":
    from evokernel_kernels import report  # noqa: F401 - it counts what is asked here
