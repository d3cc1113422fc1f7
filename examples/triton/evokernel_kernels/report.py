"""What became of each kernel: one line when a program with EVOKERNEL_REPORT=1 ends.

guards.py imports this where the variable asks for it, and only then do calls of guards pass through here. Of a call
that torch.compile compiles it is known that the kernel was taken, and not why another one was not.
"""

import atexit
import sys
from collections import Counter, defaultdict

import torch

from evokernel_kernels import guards

_register, _borrow, _ready = guards.register, guards.borrow, guards.ready
_noted, _may_be_ordinary, _ordinary, _fits = guards.noted, guards.may_be_ordinary, guards.ordinary, guards.fits
_operator = guards.operator
_absent = {}
"""Why a kernel can never run here, empty where it can."""
_asked, _plain, _ran = Counter(), Counter(), Counter()
"""Calls by the kernel: all of them, those whose tensors are ordinary, and those that it computed."""
_refused = defaultdict(Counter)


def register(package, name, schema, reference, host=None):
    _register(package, name, schema, reference, host)
    _absent[name] = "" if hasattr(torch.ops.evokernel, name) else _lacking(host)


def _lacking(host):
    if host is not None and not guards.ON_NPU:
        return "no Triton for this GPU" if guards.has_gpu() else "no GPU"
    return "not built" if guards.ON_NPU else "no NPU"


def borrow(name, *arguments):
    _borrow(name, *arguments)
    missing = "not in torch_npu" if guards.ON_NPU else "no NPU"
    _absent[name] = "" if hasattr(torch.ops.evokernel, name) else missing


def ready(package, name, *arguments):
    is_ready = _ready(package, name, *arguments)
    if not is_ready and not _absent[name]:
        _absent[name] = "code changed"
    return is_ready


def noted():
    result = _noted()
    if not torch.compiler.is_compiling():
        _asked[_caller()] += 1
        if result:
            _refused[_caller()]["traced"] += 1
    return result


def may_be_ordinary(tensors, *device):
    holds = _may_be_ordinary(tensors, *device)
    if not holds and not torch.compiler.is_compiling():
        _refused[_caller()][_why(tensors, *device)] += 1
    return holds


def ordinary(dense, strided, default=torch.float32, device=guards.DEVICE):
    holds = _ordinary(dense, strided, default, device)
    if not torch.compiler.is_compiling():
        _plain[_caller()] += holds
        if not holds:
            _refused[_caller()][_why((*dense, *strided), device)] += 1
    return holds


def fits(name, *sizes):
    holds = _fits(name, *sizes)
    if not holds and not torch.compiler.is_compiling():
        _refused[name]["sizes"] += 1
    return holds


def operator(name):
    _count(name)
    return _operator(name)


def _count(name):
    _ran[name] += 1


_count._dynamo_marked_constant = True  # a compiler asks once, as it compiles


def _caller():
    return sys._getframe(2).f_globals["NAME"]


def _why(tensors, device=guards.DEVICE):
    """What ``ordinary`` refuses of tensors, in a word."""
    if tensors[0].device.type != device:
        return f"tensors on {tensors[0].device.type}"
    if torch.is_autocast_enabled(device):
        return "autocast"
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return "gradient"
    return "mode, hook or layout"


def absent():
    """Of each kernel that was imported why it cannot run here, empty where it can."""
    names = {name.split(".")[1] for name in list(sys.modules) if name.startswith("evokernel_kernels.")}
    return {name: _absent.get(name, "package changed") for name in sorted(names - {"guards", "report"})}


def _reason(name):
    """Why a kernel that could run never did: what refused most of its calls."""
    if not _asked[name]:
        return "not called"
    reasons = Counter(_refused[name])
    reasons["shapes or dtypes"] = _plain[name] - reasons["sizes"]
    reasons["values"] = _asked[name] - _plain[name] - sum(_refused[name].values()) + reasons["sizes"]
    return reasons.most_common(1)[0][0]


def line():
    """``3 of 10 kernels ran; 7 not: gradient (4), no NPU (3)``; empty where no kernel was imported."""
    kernels = absent()
    left = Counter(why or _reason(name) for name, why in kernels.items() if not _ran[name])
    ran = len(kernels) - left.total()
    if not kernels:
        return ""
    words = f"{ran} of {len(kernels)} kernels ran"
    reasons = ", ".join(f"{reason} ({count})" for reason, count in left.most_common())
    return f"{words}; {left.total()} not: {reasons}" if left else words


def _tell():
    if said := line():
        print(f"EvoKernel: {said}", file=sys.stderr)


atexit.register(_tell)
for _function in (register, borrow, ready, noted, may_be_ordinary, ordinary, fits, operator):
    setattr(guards, _function.__name__, _function)
