"""The certificate that callers are shown, exchanged while connections come in."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from admission.certificates import Pair


class ShownCertificate:
    """A server's TLS settings; a new certificate counts from the next connection on."""

    def __init__(self) -> None:
        self.context = _context()
        self.until: datetime | None = None
        """When the one that is shown ends; None: there is none yet."""
        self._in_force: bytes | None = None

    @property
    def is_shown(self) -> bool:
        """Whether there is one."""
        return self.until is not None

    def show(self, certificate: bytes, key: bytes) -> bool:
        """Use it from now on; False if it is in use already.

        Raises ValueError, and stays as it was, for what is no pair.
        """
        if certificate + key == self._in_force:
            return False
        with _as_file(certificate + b"\n" + key) as path:
            try:
                _context().load_cert_chain(path)  # a live context that is given half a pair shows nothing
                self.context.load_cert_chain(path)
            except ssl.SSLError as error:
                raise ValueError(f"no certificate with its key: {error.reason or error}") from None
        self._in_force, self.until = certificate + key, Pair(certificate, key).parsed().not_valid_after_utc
        return True


class CertificateFolder:
    """tls.crt and tls.key in a folder, as cert-manager's Secret is mounted; looked at for changes."""

    def __init__(self, folder: Path, shown: ShownCertificate) -> None:
        self._folder = folder
        self._shown = shown

    def look(self) -> bool:
        """Show what is there; False if it is what was there.

        Raises ValueError, which names the file and the cause.
        """
        try:
            certificate, key = ((self._folder / name).read_bytes() for name in ("tls.crt", "tls.key"))
        except OSError as error:
            raise ValueError(f"{error.filename} cannot be read: {error.strerror}") from None
        try:
            return self._shown.show(certificate, key)
        except ValueError as error:
            raise ValueError(f"{self._folder}: tls.crt and tls.key are {error}") from None


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A path that only this process reads: OpenSSL takes no bytes. In memory where the system can."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile() as file:  # mode 600
        file.write(content)
        file.flush()
        yield file.name
