"""The red team: one folder per enemy, each test one attack that must be caught.

``make attacks`` runs them all and prints how many were caught, by class. A plain test counts as one attack, a
parametrised one as one for each of its cases; its docstring or its case says what the attacker wants and what
must happen instead. One that takes seconds is marked ``thorough``: ``make test`` leaves it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from attrs import frozen

from evokernel_core.twin.build import Twin
from evokernel_core.verifier.sandbox import probe


@frozen
class Attack:
    """``wants`` is what the attacker is after, ``must`` what has to happen instead; ``given`` what the test
    needs to try it."""

    name: str
    wants: str
    must: str
    given: Any = None


def not_full(twin: Twin) -> str:
    """Why an attack on the sandbox cannot be tried here, for people."""
    level = probe(twin.launcher).level
    return f"this Linux confines {level} and not all that full confinement asks for (docs/security.md)"


def each(attacks: Sequence[Attack]) -> pytest.MarkDecorator:
    """Parametrises a test over its ``attack``, one case each. Raises ValueError for a name given twice."""
    names = [attack.name for attack in attacks]
    if len(set(names)) != len(names):
        raise ValueError(f"an attack is named twice: {names}")
    return pytest.mark.parametrize("attack", attacks, ids=names)
