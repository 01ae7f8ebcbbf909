"""The harness's own few requests, with the standard library: code under test must not set up its test."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

TIMEOUT_S = 10.0
# Someone else may listen on the port, and say nothing.
READY_TIMEOUT_S = 1.0
NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Rest:
    """Requests as one user; no proxy is ever used, since the server is on loopback."""

    def __init__(self, server: str, token: str, ca_file: Path) -> None:
        self._server = server
        self._token = token
        context = ssl.create_default_context(cafile=str(ca_file))
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        timeout_s: float = TIMEOUT_S,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> Any:
        """The decoded answer; raises urllib.error.URLError (HTTPError for an error status)."""
        data = None if body is None else json.dumps(body).encode()
        usual = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        request = urllib.request.Request(
            self._server + path, data=data, headers=usual | dict(headers), method=method
        )
        with self._opener.open(request, timeout=timeout_s) as answer:
            raw = answer.read()
        return json.loads(raw) if raw[:1] in (b"{", b"[") else raw

    def columns(self, path: str) -> dict[str, Any]:
        """One object's cells by the column's name, as `kubectl get -o wide` asks for them."""
        url, accept = self._server + path, "application/json;as=Table;v=v1;g=meta.k8s.io"
        headers = {"Authorization": f"Bearer {self._token}", "Accept": accept}
        with self._opener.open(urllib.request.Request(url, headers=headers), timeout=TIMEOUT_S) as answer:
            table = json.loads(answer.read())
        names = [one["name"] for one in table["columnDefinitions"]]
        return dict(zip(names, table["rows"][0]["cells"], strict=True))

    def is_ready(self) -> bool:
        """Whether /readyz says ok."""
        try:
            return bool(self.request("GET", "/readyz", timeout_s=READY_TIMEOUT_S) == b"ok")
        except OSError:
            return False

    def exists(self, path: str) -> bool:
        """Whether a GET of `path` succeeds; raises for anything but 404."""
        try:
            self.request("GET", path)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != 404:
                raise
            return False
        return True
