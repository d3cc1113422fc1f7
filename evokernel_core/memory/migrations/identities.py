"""The identity of a task as the second step of the schema computed it from a task's JSON: what is computed,
without names, source lines and the way of the capture. Those of today are ``domain/task.py``'s."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_WORD = re.compile(r"[A-Za-z_]\w*")
Json = dict[str, Any]


def identity_of(task: Json) -> str:
    """sha256 (hex) of the canonical JSON of a task. Raises KeyError, TypeError, ValueError, AttributeError,
    SyntaxError or RecursionError for what is no task."""
    symbols = {symbol["name"]: f"s{place}" for place, symbol in enumerate(task["symbols"])}
    canonical = {
        "name": "",
        "graph": _graph(task["graph"], symbols),
        "symbols": [
            {"name": symbols[s["name"]], "size": int(s["size"]), "minimum": int(s.get("minimum", 1))}
            for s in task["symbols"]
        ],
        "tolerance": {name: float(task["tolerance"][name]) for name in ("rtol", "atol")},
        "op_category": str(task["op_category"]),
    }
    text = json.dumps(canonical, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _graph(graph: Json, symbols: Mapping[str, str]) -> Json:
    nodes = _nodes_in_order(graph)
    updates = graph.get("updates", ())
    names = {entry["name"]: f"i{place}" for place, entry in enumerate(graph["inputs"])}
    counters = [update["name"] for update in updates if update["name"] not in names]
    names |= {name: f"u{place}" for place, name in enumerate(counters)}
    names |= {node["name"]: f"n{place}" for place, node in enumerate(nodes)}
    numbered = {
        "inputs": [
            {
                "name": names[entry["name"]],
                "spec": _spec(entry["spec"], symbols),
                "kind": entry.get("kind", "tensor"),
                "expression": "",
            }
            for entry in graph["inputs"]
        ],
        "nodes": [_node(node, names, symbols) for node in nodes],
        "outputs": [_argument(output, names, symbols) for output in graph["outputs"]],
    }
    if updates:
        numbered["updates"] = [
            {
                "name": names[update["name"]],
                "spec": _spec(update["spec"], symbols),
                "expression": "",
                "output": update.get("output"),
                "step": update.get("step", 0),
            }
            for update in updates
        ]
    return numbered


def _nodes_in_order(graph: Json) -> list[Json]:
    """The nodes that outputs depend on, each behind what it reads."""
    nodes = {node["name"]: node for node in graph["nodes"]}
    done: dict[str, Json] = {}
    for output in graph["outputs"]:
        stack = [(output["ref"], False)]
        while stack:
            name, is_read = stack.pop()
            if is_read:
                done.setdefault(name, nodes[name])
            elif name in nodes and name not in done:
                node = nodes[name]
                operands = _operands([*node["args"], *(value for _, value in node["kwargs"])])
                stack += [(name, True), *((operand, False) for operand in reversed(list(operands)))]
    return list(done.values())


def _operands(arguments: list[Any]) -> Iterator[str]:
    for argument in arguments:
        if isinstance(argument, dict) and "ref" in argument:
            yield argument["ref"]
        elif isinstance(argument, list):
            yield from _operands(argument)


def _node(node: Json, names: Mapping[str, str], symbols: Mapping[str, str]) -> Json:
    return {
        "name": names[node["name"]],
        "op": node["op"],
        "args": _argument(node["args"], names, symbols),
        "kwargs": sorted(
            ([key, _argument(value, names, symbols)] for key, value in node["kwargs"]),
            key=lambda pair: pair[0],
        ),
        "outputs": [_spec(output, symbols) for output in node["outputs"]],
        "line": 0,
    }


def _argument(argument: Any, names: Mapping[str, str], symbols: Mapping[str, str]) -> Any:
    match argument:
        case {"ref": name, "index": index}:
            return {"ref": names[name], "index": index}
        case {"sym": expression}:
            return {"sym": str(_size(expression, symbols))}
        case list():
            return [_argument(element, names, symbols) for element in argument]
    return argument


def _spec(spec: Json, symbols: Mapping[str, str]) -> Json:
    shape = [_size(size, symbols) for size in spec["shape"]]
    return {"shape": shape, "dtype": spec["dtype"], "contiguous": spec.get("contiguous", True)}


def _size(size: Any, symbols: Mapping[str, str]) -> Any:
    """A number, or an expression under new names with the terms of sums and products sorted."""
    if isinstance(size, int):
        return size
    renamed = _WORD.sub(lambda word: symbols.get(word[0], word[0]), str(size))
    return ast.unparse(_sorted(ast.parse(renamed, mode="eval").body))


def _sorted(node: ast.expr) -> ast.expr:
    match node:
        case ast.BinOp(op=ast.Add() | ast.Mult() as op):
            terms = sorted(map(_sorted, _terms(node, type(op))), key=ast.unparse)
            chain = terms[0]
            for term in terms[1:]:
                chain = ast.BinOp(chain, op, term)
            return chain
        case ast.BinOp(left, op, right):
            return ast.BinOp(_sorted(left), op, _sorted(right))
        case ast.UnaryOp(op, operand):
            return ast.UnaryOp(op, _sorted(operand))
    return node


def _terms(node: ast.expr, kind: type[ast.operator]) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, kind):
        yield from _terms(node.left, kind)
        yield from _terms(node.right, kind)
    else:
        yield node
