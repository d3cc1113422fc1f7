"""Opens the verifier that the settings ask for."""

from __future__ import annotations

from functools import partial

from evokernel_core import __version__
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.settings import Settings
from evokernel_core.extras import REMOTE, needed
from evokernel_core.targets import KERNEL_FILES, TARGETS, load_target, load_toolchain, target_for, with_device
from evokernel_core.verifier.base import Backend, ReferenceRunner, Verifier


def backends() -> tuple[str, ...]:
    """What judges kernels of any target."""
    return tuple(name for target in TARGETS for name in load_toolchain(target).backends())


def open_backend(name: str, device: str, python: str = "") -> Backend:
    """The backend of that name for a device. ``python`` runs on the device.

    Raises UsageError for an unknown one, VerifierUnavailable for one whose tools this machine lacks.
    """
    from evokernel_core.compiler.author import KernelAuthor

    target = load_target(target_judged_by(name))
    author = KernelAuthor(target, target.device(device))
    opened: Backend = load_toolchain(target.name).backends()[name](author, python)
    return opened


def name_of(backend: str) -> str:
    """What verdicts of a backend on this machine are signed with, without opening it."""
    return f"{backend} {__version__}{load_toolchain(target_judged_by(backend)).signature(backend)}"


def default_backend(settings: Settings) -> str:
    """What judges here unless something else is asked for: the first of the target."""
    settings = with_device(settings)
    return next(iter(load_toolchain(target_for(settings.chip, settings.target)).backends()))


def device_of(backend: str, device: str = "") -> str:
    """The device that a backend judges for: that of the name, else its target's own. Raises UsageError for an
    unknown backend, and for a device that its target does not have."""
    return with_device(Settings(target=target_judged_by(backend), chip=device)).chip


def target_judged_by(backend: str) -> str:
    """The target whose kernels a backend judges. Raises UsageError for an unknown one."""
    for target in TARGETS:
        if backend in load_toolchain(target).backends():
            return target
    raise UsageError(
        "There is no backend called {name}; choose one of: {known}.",
        name=repr(backend),
        known=", ".join(backends()),
    )


def open_verifier(
    settings: Settings,
    reference: ReferenceRunner,
    backend: str = "",
    *,
    replay: str = "",
    thorough: bool = False,
) -> Verifier:
    """A remote verifier where the settings name a URL, else one in this process, whose backend is by default
    the first of the target. ``replay`` is the draw of an earlier verdict, ``thorough`` as LocalVerifier has
    it. Raises UsageError where ``replay`` is none, or is given to a service, which draws its own, and for a
    backend of another target."""
    if settings.verifier_url:
        if replay:
            raise UsageError("A service draws its own cases; replay a verdict without --backend URL.")
        with needed(REMOTE):
            from evokernel_core.verifier.client import RemoteVerifier

        return RemoteVerifier(settings.verifier_url, settings.verifier_token, settings.verifier_ca_bundle)
    from evokernel_core.verifier import draw
    from evokernel_core.verifier.local import LocalVerifier

    backend = backend or default_backend(settings)
    target = target_for(settings.chip, settings.target)
    known = load_toolchain(target).backends()
    if backend not in known and target_judged_by(backend) != target:
        raise UsageError(
            "The backend {name} does not verify kernels in {target}; choose one of: {known}.",
            name=backend,
            target=KERNEL_FILES[target].title,
            known=", ".join(known),
        )
    opened = open_backend(backend, settings.chip, settings.interpreter)
    drawn = partial(draw.replay, replay) if replay else draw.fresh
    return LocalVerifier(reference, opened, draw=drawn, thorough=thorough)
