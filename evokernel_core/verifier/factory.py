"""Opens the verifier that the settings ask for."""

from __future__ import annotations

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.settings import Settings
from evokernel_core.twin.chip import load_chip
from evokernel_core.verifier.base import Backend, ReferenceRunner, Verifier

BACKENDS = ("twin", "cann")


def open_backend(name: str, chip: str) -> Backend:
    """The backend of that name. Raises UsageError for an unknown one, VerifierUnavailable for one
    whose tools this machine lacks."""
    if name == "twin":
        from evokernel_core.verifier.backends.twin import TwinBackend

        return TwinBackend(load_chip(chip))
    if name == "cann":
        from evokernel_core.verifier.backends.cann import CannBackend

        return CannBackend(load_chip(chip))
    raise UsageError(f"There is no backend called {name!r}; choose one of: {', '.join(BACKENDS)}.")


def open_verifier(settings: Settings, reference: ReferenceRunner, backend: str = "twin") -> Verifier:
    """A remote verifier where the settings name a URL, else one in this process."""
    if settings.verifier_url:
        from evokernel_core.verifier.client import RemoteVerifier

        return RemoteVerifier(settings.verifier_url, settings.verifier_token, settings.verifier_ca_bundle)
    from evokernel_core.verifier.local import LocalVerifier

    return LocalVerifier(reference, open_backend(backend, settings.chip))
