"""Opens the verifier that the settings ask for."""

from __future__ import annotations

from functools import partial

from evokernel_core import __version__
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.settings import Settings
from evokernel_core.extras import REMOTE, needed
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.verifier.base import Backend, ReferenceRunner, Verifier

BACKENDS = ("twin", "cann")


def open_backend(name: str, chip: str, python: str = "") -> Backend:
    """The backend of that name; the twin asks bisheng too where that works. ``python`` has torch_npu.

    Raises UsageError for an unknown one, VerifierUnavailable for one whose tools this machine lacks.
    """
    if name == "twin":
        from evokernel_core.verifier.backends.bisheng import WithBisheng, find_gate
        from evokernel_core.verifier.backends.twin import TwinBackend

        twin = TwinBackend(load_chip(chip))
        toolkit = find_gate()
        return WithBisheng(twin, toolkit) if toolkit else twin
    if name == "cann":
        from evokernel_core.verifier.backends.cann import CannBackend
        from evokernel_core.verifier.backends.cann_tools import find_tools

        return CannBackend(load_chip(chip), find_tools(python))
    raise UsageError(
        "There is no backend called {name}; choose one of: {known}.",
        name=repr(name),
        known=", ".join(BACKENDS),
    )


def name_of(backend: str) -> str:
    """What verdicts of a backend on this machine are signed with, without opening it."""
    from evokernel_core.verifier.backends.bisheng import find_gate, gate_name

    return f"{backend} {__version__}{gate_name(find_gate() if backend == 'twin' else None)}"


def open_verifier(
    settings: Settings,
    reference: ReferenceRunner,
    backend: str = "twin",
    *,
    replay: str = "",
    thorough: bool = False,
) -> Verifier:
    """A remote verifier where the settings name a URL, else one in this process. ``replay`` is the draw of an
    earlier verdict, ``thorough`` as LocalVerifier has it. Raises UsageError where ``replay`` is none, or is
    given to a service, which draws its own."""
    if settings.verifier_url:
        if replay:
            raise UsageError("A service draws its own cases; replay a verdict without --backend URL.")
        with needed(REMOTE):
            from evokernel_core.verifier.client import RemoteVerifier

        return RemoteVerifier(settings.verifier_url, settings.verifier_token, settings.verifier_ca_bundle)
    from evokernel_core.verifier import draw
    from evokernel_core.verifier.local import LocalVerifier

    opened = open_backend(backend, settings.chip, settings.interpreter)
    drawn = partial(draw.replay, replay) if replay else draw.fresh
    return LocalVerifier(reference, opened, draw=drawn, thorough=thorough)
