"""The certificate that callers are shown, exchanged while connections come in."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class ShownCertificate:
    """A server's TLS settings; a new certificate counts from the next connection on."""

    def __init__(self) -> None:
        self.context = _context()
        self.is_shown = False
        self._in_force = b""

    def show(self, certificate: bytes, key: bytes) -> None:
        """Use it from now on. Raises ValueError, and stays as it was, for what is no pair."""
        if certificate + key == self._in_force:
            return
        with _as_file(certificate + b"\n" + key) as path:
            try:
                _context().load_cert_chain(path)  # a live context that is given half a pair shows nothing
                self.context.load_cert_chain(path)
            except ssl.SSLError as error:
                raise ValueError(f"no certificate with its key: {error.reason or error}") from None
        self._in_force, self.is_shown = certificate + key, True


class CertificateFolder:
    """tls.crt and tls.key in a folder, as cert-manager's Secret is mounted; looked at for changes."""

    def __init__(self, folder: Path, shown: ShownCertificate) -> None:
        self._folder = folder
        self._shown = shown

    def look(self) -> None:
        """Show what is there. Raises ValueError, which names the file and the cause."""
        try:
            certificate, key = ((self._folder / name).read_bytes() for name in ("tls.crt", "tls.key"))
        except OSError as error:
            raise ValueError(f"{error.filename} cannot be read: {error.strerror}") from None
        try:
            self._shown.show(certificate, key)
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
