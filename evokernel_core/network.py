"""What our HTTP clients share: whom to trust, and which hosts are this machine."""

from __future__ import annotations

import ipaddress
import ssl

from evokernel_core.domain.errors import UsageError


class TooMuch(Exception):
    """An answer larger, slower or otherwise packed than we accept; the message goes on "The endpoint ..."."""


def tls_context(ca_bundle: str = "") -> ssl.SSLContext:
    """Trusts what the system trusts and the certificates in ``ca_bundle`` (PEM). Raises UsageError."""
    import httpx2  # only here, as the light install has no HTTP client

    context = httpx2.create_ssl_context()
    if ca_bundle:
        try:
            context.load_verify_locations(cafile=ca_bundle)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(
                "The CA bundle {path} cannot be read ({error}); point it at a PEM file of certificates.",
                path=ca_bundle,
                error=error,
            ) from error
    return context


def is_loopback(host: str) -> bool:
    """Whether the host is this machine by name or address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_untrusted_certificate(error: BaseException | None) -> bool:
    """Whether an error came of a certificate that nobody vouches for."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
