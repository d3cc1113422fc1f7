"""One program, original or edited, under every perturbation: what came of each is written to a folder.

    python side.py DRIVER [NAME] --file FILE --out FOLDER [--seconds S] [--only LIST.json] [--seed N]

Runs in the interpreter of the model's project with nothing but the standard library and torch. DRIVER has
``build(**changes)`` and ``inputs(...)``, is the table of such, of which NAME is one, or is a file with
``get_inputs()`` and a class ``Model``. The list of what was done is FOLDER/done.jsonl; each outcome is
FOLDER/N.pt. LIST is such a list, with null for what is left out.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import inspect
import json
import random
import signal
import sys
import time
import types
import warnings
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

HERE = Path(__file__).parent
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]
CALL_S = 30


def load(name: str, path: Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


perturbations = load("evokernel_perturbations", HERE / "perturbations.py")
Run, NotApplicable = perturbations.Run, perturbations.NotApplicable


class TooLong(Exception):
    """A call did not end in time."""


class Telling:
    """A file that says its own inputs, as a driver."""

    CHANGES = ()

    def __init__(self, module: types.ModuleType) -> None:
        self.module = module

    def build(self) -> Any:
        classes = [
            item for item in vars(self.module).values()
            if inspect.isclass(item) and issubclass(item, torch.nn.Module)
            and item.__module__ == self.module.__name__
        ]  # fmt: skip
        target = getattr(self.module, "Model", None) or classes[-1]
        given = getattr(self.module, "get_init_inputs", list)()
        return target(**given) if isinstance(given, dict) else target(*given)

    def inputs(self) -> Any:
        given = self.module.get_inputs()
        return given if isinstance(given, dict) else tuple(given)


def driver_of(path: str, *names: str) -> Any:
    module = load(names[0] if names else Path(path).stem, Path(path))
    if names:
        return module.DRIVERS[names[0]].load()
    return module if hasattr(module, "build") else Telling(module)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("driver", nargs="+")
    parser.add_argument("--file", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    sys.stdout = sys.stderr  # what models print
    driver = driver_of(*args.driver)
    done = args.out / "done.jsonl"
    finished = len(done.read_text().splitlines()) if done.exists() else 0
    todo = json.loads(args.only.read_text()) if args.only else list(perturbations.plan(driver))
    ends = time.monotonic() + args.seconds
    with done.open("a") as journal:
        for index, case in enumerate(todo):
            if index < finished:  # a run that was cut off goes on behind the case that cut it off
                continue
            if case is None:
                _note(journal, None)
                continue
            kind, number, mode = case
            if time.monotonic() > ends and not args.only:
                break
            outcome = perturbed(driver, args.file, kind, number, mode, args.seed)
            torch.save(outcome, args.out / f"{index}.pt")
            _note(journal, [kind, number, mode])


def _note(journal: Any, line: Any) -> None:
    journal.write(json.dumps(line) + "\n")
    journal.flush()


def _too_long(*_: Any) -> None:
    raise TooLong


def perturbed(driver: Any, file: str, kind: str, number: int, mode: str, seed: int) -> dict[str, Any]:
    """What a build and a call came to: results, gradients, random draws and state, or the exception."""
    run = Run(driver, file, mode)
    rng = random.Random(f"{seed} {kind} {number}")
    started = _kernel_calls()
    outcome: dict[str, Any] = {"kind": kind, "number": number, "mode": mode}
    with ExitStack() as scope, torch.random.fork_rng(devices=[]):
        run.scope = scope
        signal.signal(signal.SIGALRM, _too_long)
        signal.setitimer(signal.ITIMER_REAL, CALL_S)
        try:
            random.seed(seed)
            torch.manual_seed(seed)
            outcome |= _outcome(run, kind, number, rng)
        except NotApplicable:
            outcome["skipped"] = True
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            outcome |= {"error": type(error).__name__, "message": str(error)[:300]}
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        outcome["notes"] = list(run.notes)
        outcome["precision"] = str(run.precision)
    ended = _kernel_calls()
    outcome["kernels"] = {
        name: ended[name] - started.get(name, 0) for name in ended if ended[name] != started.get(name, 0)
    }
    return outcome


def _outcome(run: Any, kind: str, number: int, rng: random.Random) -> dict[str, Any]:
    if kind in perturbations.EARLY:
        perturbations.EARLY[kind][0](run, rng, number)
    run.build()
    torch.manual_seed(1)
    run.supply()
    if run.mode == "infer":
        run.scope.enter_context(torch.no_grad())
    if kind in perturbations.LATE:
        perturbations.LATE[kind][0](run, rng, number)
    torch.manual_seed(2)
    given = run.tensors
    result = run()
    draws = hashlib.sha256(torch.get_rng_state().numpy().tobytes() + repr(random.getstate()).encode())
    found = {"draws": draws.hexdigest(), **_described("result", result)}
    if any(isinstance(x, torch.Tensor) and x.requires_grad for x in pytree.tree_leaves(result)):
        found |= _gradients(run, result, given)
    found |= _described("inputs", given)
    found["state"] = _state(run.model)
    return found


def _state(model: Any) -> dict[str, Any]:
    """Everything that modules remember: their state, and what they hold as plain attributes, as caches and
    counters often are."""
    state = {k: v for k, v in model.state_dict().items() if isinstance(v, torch.Tensor)}
    for path, module in model.named_modules():
        held = {**vars(module), **module._buffers}
        for name, value in held.items():
            leaves = pytree.tree_leaves(value) if isinstance(value, (list, tuple)) else [value]
            for number, leaf in enumerate(leaves):
                if isinstance(leaf, (torch.Tensor, *perturbations.PLAIN)):
                    state[f"{path}.{name}.{number}"] = leaf
    return {k: _leaf(v) for k, v in state.items()}


def _described(name: str, value: Any) -> dict[str, Any]:
    leaves, structure = pytree.tree_flatten(value)
    return {name: [_leaf(item) for item in leaves], f"{name}_structure": str(structure)[:2000]}


def _leaf(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        simple = isinstance(value, (bool, int, float, str, type(None)))
        return {"value": repr(value) if simple else type(value).__qualname__}
    if value.device.type == "meta":
        data = None
    else:
        with torch.no_grad():
            data = value.detach().as_subclass(torch.Tensor).clone(memory_format=torch.contiguous_format)
    return {
        "type": type(value).__name__, "dtype": str(value.dtype), "shape": tuple(value.shape),
        "strides": value.stride() if value.layout is torch.strided else (),
        "requires_grad": value.requires_grad, "data": data,
    }  # fmt: skip


def _gradients(run: Any, result: Any, given: list[torch.Tensor]) -> dict[str, Any]:
    """Those of a weighted sum of all results."""
    total: Any = 0.0
    generator = torch.Generator().manual_seed(3)
    for leaf in pytree.tree_leaves(result):
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad:
            weights = torch.rand(leaf.shape, generator=generator)
            total = total + (leaf.float() * weights).sum() if leaf.is_floating_point() else total
    if not isinstance(total, torch.Tensor):
        return {}
    total.backward()
    named = dict(run.model.named_parameters())
    named |= {f"input {n}": x for n, x in enumerate(given) if x.is_leaf}
    with suppress(RuntimeError):
        return {"gradients": {k: _leaf(v.grad) for k, v in named.items() if v.grad is not None}}
    return {}


def _kernel_calls() -> dict[str, int]:
    guards = [m for name, m in list(sys.modules.items()) if name.endswith("evokernel_kernels.guards")]
    return guards[0].calls() if guards else {}


if __name__ == "__main__":
    main()
