"""Defects of our own: an exception that nobody raised on purpose costs what was being done, with a sentence.

The traceback goes to the log, so that a defect is neither hidden nor fatal.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from evokernel_core.domain.errors import EvoKernelError, InternalError
from evokernel_core.domain.sentence import Sentence

log = logging.getLogger(__name__)

_LONGEST = 200


@contextmanager
def contained(doing: str, line: int = 0) -> Iterator[None]:
    """Raises InternalError in place of an exception that is none of ours. ``doing`` is what was done,
    as in "planning its kernels"; ``line`` is the region's in the user's file, where there is one."""
    try:
        yield
    except EvoKernelError:
        raise
    except Exception as error:
        sentence = defect(error, doing, line)
        log.error("%s", sentence, exc_info=error)
        raise InternalError(sentence) from error


def defect(error: BaseException, doing: str, line: int = 0) -> Sentence:
    """What is said of an exception that nobody raised on purpose."""
    told = {"doing": doing, "error": describe(error)}
    if line:
        return Sentence(
            "Line {line} met a defect of EvoKernel while {doing} ({error}): "
            "please report it with the traceback in the log.",
            line=line,
            **told,
        )
    return Sentence(
        "This work met a defect of EvoKernel while {doing} ({error}): "
        "please report it with the traceback in the log.",
        **told,
    )


def describe(error: BaseException) -> str:
    """The exception's type and the first line of its text."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
