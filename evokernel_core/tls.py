"""TLS for our HTTP clients: the operating system's trust store, and a CA bundle on top of it."""

from __future__ import annotations

import ssl

import httpx2

from evokernel_core.domain.errors import UsageError


def tls_context(ca_bundle: str = "") -> ssl.SSLContext:
    """Trusts what the system trusts and the certificates in ``ca_bundle`` (PEM). Raises UsageError."""
    context = httpx2.create_ssl_context()
    if ca_bundle:
        try:
            context.load_verify_locations(cafile=ca_bundle)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(
                f"The CA bundle {ca_bundle} cannot be read ({error}); point it at a PEM file of certificates."
            ) from error
    return context
