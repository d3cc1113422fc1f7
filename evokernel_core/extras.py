"""What the light install leaves out: parts of EvoKernel that need packages which only some people want.

``pyproject.toml`` has an extra for each. Whoever uses such a part without its packages gets one sentence that
names the extra and how to install it from where EvoKernel itself came.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata, util
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from attrs import frozen

from evokernel_core.domain.errors import ExtraMissing
from evokernel_core.domain.sentence import Sentence

DISTRIBUTION = "evokernel-lsp"


@frozen
class Extra:
    """``modules`` are what its packages are imported as, ``purpose`` begins a sentence."""

    name: str
    purpose: Sentence
    modules: tuple[str, ...]

    @property
    def is_installed(self) -> bool:
        return all(util.find_spec(module) is not None for module in self.modules)

    def missing(self) -> ExtraMissing:
        """The error to raise where its packages are not there."""
        return ExtraMissing(
            "{purpose} needs packages that are not installed; install {distribution}[{extra}]: {command}",
            purpose=self.purpose,
            distribution=DISTRIBUTION,
            extra=self.name,
            command=install_command(self.name),
        )


MODEL = Extra("model", Sentence("Asking a language model"), ("httpx2", "openai", "pydantic", "stamina"))
REMOTE = Extra("remote", Sentence("A verifier on another machine"), ("httpx2", "pydantic", "stamina"))
SERVICE = Extra("service", Sentence("Serving a verifier"), ("fastapi", "h11", "pydantic", "uvicorn"))
STATISTICS = Extra("statistics", Sentence("Estimate calibration"), ("scipy", "sklearn"))
TRAINING = Extra("statistics", Sentence("Training a step model"), ("sklearn",))
KEYRING = Extra("keyring", Sentence("The system's keyring"), ("keyring",))
FLEET = Extra("fleet", Sentence("--ray"), ("ray",))

ALL = (MODEL, REMOTE, SERVICE, STATISTICS, KEYRING)
"""What the extra ``all`` brings."""


@contextmanager
def needed(extra: Extra) -> Iterator[None]:
    """Around imports of what ``extra`` brings. Raises ExtraMissing where it is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in extra.modules:
            raise
        raise extra.missing() from error


def install_command(extra: str) -> str:
    """How to install an extra from the checkout or wheel that EvoKernel came from, as far as it is known."""
    return f"pip install '{_origin() or '/path/to/evokernel'}[{extra}]'"


def _origin() -> str:
    """The folder or wheel that was installed (PEP 610); empty where it is gone or was never one."""
    try:
        noted = metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return ""
    address = urlsplit(json.loads(noted)["url"] if noted else "")
    path = Path(url2pathname(address.path))
    return str(path) if address.scheme == "file" and path.exists() else ""
