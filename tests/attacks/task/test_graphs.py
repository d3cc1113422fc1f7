"""A task that is a program: each graph wants something that no tensor operation gives, and must be refused
with a sentence at every way in, before anything of it runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.capture.client import AgentClient
from evokernel_core.domain.admission import read_task
from evokernel_core.domain.errors import AgentFailed, CaptureError, TaskRefused, UsageError
from evokernel_core.domain.operations import operations
from evokernel_core.domain.serial import from_data
from evokernel_core.domain.task import KernelTask
from evokernel_core.verifier.schema import parse_kernel
from evokernel_core.verifier.service_worker import Judge
from tests import warm

SPEC = {"shape": [4], "dtype": "float32", "contiguous": True}
SOURCE = {
    "target": "ascendc",
    "files": {"tiling.h": "x", "op_kernel.cpp": "x"},
    "strategy": {"family": "model"},
}
X = {"ref": "x", "index": 0}


def task(*nodes: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The JSON of a task of one input with these nodes."""
    given = {"name": "x", "spec": SPEC, "kind": "tensor", "expression": "x"}
    last = nodes[-1]["name"] if nodes else "x"
    graph = {"inputs": [given], "nodes": list(nodes), "outputs": [{"ref": last, "index": 0}], "updates": []}
    return {
        "name": "t", "graph": graph, "symbols": [], "tolerance": {"rtol": 1e-4, "atol": 1e-4},
        "op_category": "other", **changes,
    }  # fmt: skip


def node(op: str, *args: Any, name: str = "y", spec: dict[str, Any] = SPEC, **kwargs: Any) -> dict[str, Any]:
    return {
        "name": name, "op": op, "args": list(args), "kwargs": [list(item) for item in kwargs.items()],
        "outputs": [spec], "line": 0,
    }  # fmt: skip


def sized(shape: list[Any], dtype: str = "float32") -> dict[str, Any]:
    return task(node("aten.relu.default", X, spec={"shape": shape, "dtype": dtype, "contiguous": True}))


def with_symbol(**changes: Any) -> dict[str, Any]:
    return task(node("aten.relu.default", X), symbols=[{"name": "s0", "size": 4, "minimum": 1, **changes}])


def nested(depth: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return task(node("aten.sum.dim_IntList", X, value))


HOSTILE = {
    # to run Python, or a program: attributes of torch.ops that are modules, classes or callables
    "ops as a module": task(node("aten.__class__.__init__", X)),
    "a loader of libraries": task(node("load_library.__call__.__func__", "/tmp/evil.so")),
    "globals of a method": task(node("load_library.__func__.__globals__", "os")),
    "the import system": task(node("__class__.__module__.__len__")),
    "dunders": task(node("__dict__.__class__.__subclasses__")),
    "higher order": task(node("higher_order.cond.default", X, X, X)),
    "python of the interpreter": task(node("prim.PythonOp.default", X)),
    "a print": task(node("prims.print.default", X)),
    "the profiler": task(node("profiler._record_function_enter_new.default", "x", None)),
    "a namespace of a library": task(node("torch_npu.npu_silu.default", X)),
    "our own namespace": task(node("evokernel.softmax_12345678.default", X)),
    "four parts": task(node("aten.add.Tensor.__call__", X, X)),
    "two parts": task(node("aten.add", X, X)),
    "no parts": task(node("", X)),
    "a unicode twin": task(node("aten.rеlu.default", X)),
    "quantized": task(node("quantized.linear_prepack.default", X, None)),
    "inductor": task(node("inductor._alloc_from_pool.default", X)),
    "c10d": task(node("c10d.allreduce_.default", [X], None)),
    # to read files and memory
    "a file as a tensor": task(node("aten.from_file.default", "/etc/passwd", False, 4)),
    "another storage": task(node("aten.set_.source_Storage", X, X)),
    "memory that nobody wrote": task(node("aten.empty.memory_format", [4])),
    "memory of another size": task(node("aten.resize_.default", X, [1 << 20])),
    "an assertion with words": task(node("aten._assert_async.msg", X, "words")),
    "a raw pointer": task(node("aten._foobar.default", X)),
    "in place": task(node("aten.add_.Tensor", X, X)),
    "an output given": task(node("aten.add.out", X, X, out=X)),
    "a copy into an input": task(node("aten.copy_.default", X, X)),
    "random numbers": task(node("aten.rand.default", [4])),
    # arguments that are no values of a graph
    "a string where a number is": task(node("aten.add.Tensor", X, "os")),
    "a word that is none": task(node("aten.gelu.default", X, approximate="exec")),
    "an unknown keyword": task(node("aten.relu.default", X, out=X)),
    "a dunder keyword": task(node("aten.relu.default", X, __class__=X)),
    "a keyword twice": task(node("aten.add.Tensor", X, X, other=X)),
    "too many arguments": task(node("aten.relu.default", *[X] * 65)),
    "a dtype that is none": task(node("aten._to_copy.default", X, dtype={"dtype": "ops"})),
    "a dtype that is a function": task(node("aten._to_copy.default", X, dtype={"dtype": "load"})),
    "a number of no width": task(node("aten.add.Tensor", X, 1 << 64)),
    "an object": task(node("aten.add.Tensor", X, {"code": "os"})),
    "lists of lists": nested(8),
    "lists without end": nested(3000),
    "a list without end": task(node("aten.sum.dim_IntList", X, [0] * 100_000)),
    # names and references
    "a value before it is": task(node("aten.relu.default", {"ref": "z", "index": 0})),
    "itself": task(node("aten.relu.default", {"ref": "y", "index": 0})),
    "a result that is not there": task(node("aten.relu.default", {"ref": "x", "index": 7})),
    "a result counted backwards": task(node("aten.relu.default", {"ref": "x", "index": -1})),
    "a result that is a word": task(node("aten.relu.default", {"ref": "x", "index": "__class__"})),
    "two of one name": task(node("aten.relu.default", X), node("aten.relu.default", X)),
    "a name that is code": task(node("aten.relu.default", X, name="y = __import__('os')")),
    "a name of Python": task(node("aten.relu.default", X, name="import")),
    "a dunder name": task(node("aten.relu.default", X, name="__builtins__")),
    "a path for a name": task(node("aten.relu.default", X, name="../../y")),
    "a long name": task(node("aten.relu.default", X, name="y" * 100_000)),
    "no output": {**task(), "graph": {**task()["graph"], "outputs": []}},
    # sizes and expressions
    "minus signs": sized(["-" * 50_000 + "4"]),
    "brackets": sized(["(" * 5000 + "4" + ")" * 5000]),
    "a tower of powers": sized(["9**9**9**9"]),
    "a product of products": sized([" * ".join(["99999999"] * 200)]),
    "shifts": sized(["1 << 60"]),
    "a call": sized(["__import__('os').system('id')"]),
    "a comprehension": sized(["[x for x in (1,)]"]),
    "an attribute": sized(["s0.__class__"]),
    "a number with a point": sized([1.5]),
    "a negative size": sized([-1]),
    "a size without end": sized([1 << 62]),
    "many sizes without end": sized([1 << 30, 1 << 30]),
    "a division by nothing": sized(["4 // 0"]),
    "an unknown symbol": sized(["s9"]),
    "many dimensions": sized([1] * 10_000),
    "an unknown dtype": sized([4], "object"),
    "a dtype that is a path": sized([4], "../float32"),
    "a symbol that is code": with_symbol(name="s0;import os"),
    "a symbol of negative size": with_symbol(size=-4),
    "a least size above the size": with_symbol(minimum=5),
    "a category that is none": task(node("aten.relu.default", X), op_category="../../x"),
    "a tolerance of anything": task(tolerance={"rtol": {"float": "inf"}, "atol": 1}),
    "text that no terminal prints": task(node("aten.relu.default", X), name="t\x1b[2J"),
    "a tensor of one value that is drawn around nothing": task(
        node("aten.relu.default", X),
        graph={
            "inputs": [{"name": "x", "spec": SPEC, "kind": "tensor", "expression": "x", "value": 0.0}],
            "nodes": [node("aten.relu.default", X)],
            "outputs": [{"ref": "y", "index": 0}],
            "updates": [],
        },
    ),
    "a setting that is no number": task(node("aten.relu.default", X), symbols=[{"name": "s0", "size": "x"}]),
}  # fmt: skip


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_graph_is_refused_over_http(data: dict[str, Any]) -> None:
    """Wants a job whose reference is a program; must be a sentence (422), no other exception."""
    with pytest.raises(UsageError):
        parse_kernel(data, SOURCE)


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_graph_is_refused_by_a_worker(data: dict[str, Any]) -> None:
    """Wants to get past the service by writing its queue; must be refused before a verifier is opened."""
    judge = Judge("nowhere:nothing", {})
    answer = judge.answer(_as_text({"task": data, "source": SOURCE}))
    assert "verdict" not in answer
    assert "nowhere" not in answer["error"]
    assert "failed on this kernel" not in answer["error"]


def _as_text(value: Any) -> str:
    """JSON however deep: Python's own writer gives up before its reader does."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {_as_text(item)}" for key, item in value.items()) + "}"
    depth = 0
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value, depth = value[0], depth + 1
    if isinstance(value, list):
        return "[" * depth + "[" + ", ".join(map(_as_text, value)) + "]" + "]" * depth
    return json.dumps(value)


@pytest.fixture(scope="module")
def agent() -> Any:

    with AgentClient(warm.interpreter()) as client:
        yield client


FOREIGN = [
    name
    for name, data in HOSTILE.items()
    if any(item["op"] not in operations() for item in data["graph"]["nodes"])
]


@pytest.mark.parametrize("name", FOREIGN)
def test_the_agent_itself_resolves_no_other_operation(name: str, agent: AgentClient, tmp_path: Path) -> None:
    """Wants to reach torch.ops behind all other checks; the agent must name the operation as none."""
    data = HOSTILE[name]
    params = {
        "graph": data["graph"],
        "sizes": {},
        "seed": 0,
        "distribution": "normal",
        "rounded": False,
        "folder": str(tmp_path),
    }
    with pytest.raises(CaptureError, match="which no kernel has"):
        agent._call("reference", params)


def test_five_nodes_that_reach_a_process(tmp_path: Path, agent: AgentClient) -> None:
    """Wants subprocess.Popen through attributes of what torch.ops holds; must leave no file behind."""
    mark = tmp_path / "mark"
    steps = [
        node("higher_order.__dict__.__getitem__", "cond", name="a"),
        node("load_library.__func__.__globals__", name="b"),
        node("__loader__.__class__.load_module", "subprocess", name="c"),
        node("aten.__class__.__subclasses__", name="d"),
        node("aten.Popen.__call__", ["touch", str(mark)], name="y"),
    ]
    data = task(*steps)
    with pytest.raises(TaskRefused):
        read_task(data)
    with pytest.raises((TaskRefused, AgentFailed, ValueError)):
        agent.reference(from_data(data, KernelTask), {}, 0, "normal", tmp_path / "case")
    assert not mark.exists()


NAMES = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["__class__", "__globals__", "os", "torch", "default", "Tensor", "prim", "profiler"]),
)
OPS = st.one_of(
    st.lists(NAMES, min_size=1, max_size=5).map(".".join),
    st.sampled_from(sorted(operations())),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8),
        st.builds(lambda name, index: {"ref": name, "index": index}, NAMES, st.integers(-2, 3)),
        st.builds(lambda text: {"sym": text}, st.text("s0123456789+-*/%() .", max_size=30)),
        st.builds(lambda name: {"dtype": name}, NAMES),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=12,
)  # fmt: skip


@given(OPS, st.lists(VALUES, max_size=5), st.dictionaries(NAMES, VALUES, max_size=3), NAMES, VALUES)
def test_whatever_nests_is_a_computation_or_refused(
    op: str, args: list[Any], kwargs: dict[str, Any], name: str, shape: Any
) -> None:
    """Wants an argument that nobody thought of; what is admitted must be tensors, numbers and words."""
    spec = {"shape": shape if isinstance(shape, list) else [4], "dtype": "float32", "contiguous": True}
    made = {
        "name": name,
        "op": op,
        "args": args,
        "kwargs": list(kwargs.items()),
        "outputs": [spec],
        "line": 0,
    }
    try:
        admitted = read_task(task(made))
    except TaskRefused:
        return
    (found,) = admitted.graph.nodes
    assert found.op in operations()
    assert found.name.isidentifier()
    assert all(_is_value(value) for value in (*found.args, *(item for _, item in found.kwargs)))


def _is_value(value: Any) -> bool:
    from evokernel_core.domain.graph import DTypeArg, SymbolicInt, ValueRef

    if isinstance(value, tuple):
        return all(map(_is_value, value))
    plain = value is None or isinstance(value, bool | int | float | ValueRef | SymbolicInt | DTypeArg)
    return plain or value in {"none", "tanh", "floor", "trunc", "left", "right", "add", "multiply", "sum",
                              "prod", "mean", "amax", "amin"}  # fmt: skip


CONFINED = """
import os, socket, torch
secret = {secret!r}
told = []
def attempt(name, action):
    try:
        action()
        told.append(name)
    except BaseException as error:
        pass
attempt("read", lambda: open(secret).read())
attempt("list", lambda: os.listdir(os.path.dirname(secret)))
attempt("home", lambda: os.listdir({home!r}))
attempt("write", lambda: open(secret + ".new", "w"))
attempt("connect", lambda: socket.create_connection(("127.0.0.1", {port}), 1))
attempt("fork", lambda: os._exit(0) if os.fork() == 0 else None)
attempt("program", lambda: os.system("true") and 1 / 0)
attempt("signal", lambda: os.kill({pid}, 0))
attempt("environment", lambda: os.environ["EVOKERNEL_SECRET_OF_MINE"])
raise RuntimeError("told: " + " ".join(told))
"""


def test_the_reference_of_a_foreign_task_is_confined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wants the home, the network, the environment and other processes from inside of PyTorch, supposing that
    a graph could run Python there; must get none of them."""
    import socket
    import sys

    from evokernel_core.verifier.confined import ConfinedReferences

    monkeypatch.setenv("EVOKERNEL_SECRET_OF_MINE", "token")
    secret = tmp_path / "secret"
    secret.write_text("token")
    with socket.create_server(("127.0.0.1", 0)) as server, ConfinedReferences(sys.executable) as confined:
        port = server.getsockname()[1]
        client, _ = confined._open()
        code = CONFINED.format(secret=str(secret), home=str(Path.home()), port=port, pid=os.getpid())
        imports = {"root": "/", "first": [], "last": []}
        params = {"path": "/m.py", "text": code, "annotations": {}, "fusible": {}, "imports": imports}
        with pytest.raises(CaptureError) as error:
            client._call("capture", params)
    words = str(error.value)
    assert "told:" in words, words
    assert words.partition("told:")[2].split(":")[0].strip(" .)").split() == []
    assert not secret.with_name("secret.new").exists()
