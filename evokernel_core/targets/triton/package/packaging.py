"""Packages of kernels in Triton: host code beside them, and what they ask of PyTorch's settings."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from attrs import frozen

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.package.packaging import DeviceWords, KernelGuard, PackagedKernel
from evokernel_core.targets.triton.launch import LaunchRecord, read_launches
from evokernel_core.targets.triton.package.host_text import host_text
from evokernel_core.targets.triton.source import FILES, KERNEL, LAUNCH

_EXACT = frozenset({"ieee", "tf32x3"})
"""Products of these have float32's accuracy; where a text does not say, Triton takes TF32."""
_PRODUCTS = frozenset({"dot", "dot_scaled"})
DETERMINISTIC = KernelGuard(
    "guards.may_vary()",
    Sentence("torch.use_deterministic_algorithms is off: the kernel adds in any order."),
)


def kernel_guards(text: str, record: LaunchRecord, task: KernelTask) -> tuple[KernelGuard, ...]:
    """Those of a kernel. Raises SyntaxError for a text that is no Python."""
    calls = list(_calls(ast.parse(text)))
    guards: list[KernelGuard] = []
    if any(call.func.attr.startswith("atomic_") for call in calls if isinstance(call.func, ast.Attribute)):
        guards.append(DETERMINISTIC)
    if _has_float32(record, task) and any(map(_may_be_tf32, calls)):
        guards.append(tf32_guard(task))
    return tuple(guards)


def tf32_guard(task: KernelTask) -> KernelGuard:
    """The settings that let PyTorch compute the products of a task in TF32."""
    has_convolution = any("convolution" in node.op for node in task.graph.nodes)
    has_product = any(word in node.op for node in task.graph.nodes for word in ("mm", "matmul", "attention"))
    operations = ["matmul"] if has_product or not has_convolution else []
    operations += ["conv"] if has_convolution else []
    return KernelGuard(
        f"guards.allows_tf32({', '.join(map(_quoted, operations))})",
        Sentence(
            "PyTorch's setting lets float32 products be computed in TF32 ({operations}).",
            operations=", ".join(operations),
        ),
    )


def _quoted(word: str) -> str:
    return f'"{word}"'


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _has_float32(record: LaunchRecord, task: KernelTask) -> bool:
    """Whether operands of a product can be float32 that were not float16 or bfloat16 before."""
    inputs = [operand.spec.dtype for operand in task.graph.inputs]
    return "float32" in (*inputs, *(one.dtype for one in record.scratch))


def _may_be_tf32(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _PRODUCTS:
        return False
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    match given.get("input_precision"), given.get("allow_tf32"):
        case (ast.Constant(value=precision), _) if precision in _EXACT:
            return False
        case None, ast.Constant(value=False):
            return False
    return True


HOST = "host.py"
WORDS = DeviceWords(
    "cuda",
    one="GPU",
    kernel="a Triton kernel for GPUs",
    absent="no GPU or no triton is present",
    is_there="guards.has_gpu()",
    only="the kernel runs on a GPU with triton only",
    ready=Sentence(
        "triton is installed and the package's files are the ones that were verified; until then your own "
        "code runs."
    ),
)


@frozen
class TritonPackaging:
    """``package.packaging.Packaging``."""

    words: DeviceWords = WORDS
    names: tuple[str, ...] = FILES

    def packaged(
        self, name: str, task: KernelTask, source: KernelSource, beside: Iterable[str]
    ) -> PackagedKernel:
        text = host_text(name, task, read_launches(source.files[LAUNCH]))
        return PackagedKernel({HOST: text}, self.guards(task, source), host=True)

    def guards(self, task: KernelTask, source: KernelSource) -> tuple[KernelGuard, ...]:
        try:
            return kernel_guards(source.files[KERNEL], read_launches(source.files[LAUNCH]), task)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise UsageError("kernel.py is no Python; make the kernel again.") from error
