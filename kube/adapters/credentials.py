"""Where the API server is and who we are to it: a kubeconfig, or the pod's own ServiceAccount.

The official library reads the files, runs credential plugins and refreshes tokens; here its errors become one
line, and its configuration is asked for fresh credentials in time. Must not know: how a request is made.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

from kube.errors import Misconfigured

# A projected ServiceAccount token is rewritten at 80 % of its hour, a token file is cheap to read again.
REFRESH_S = 60.0
# A credential plugin that hangs (it waits for a browser, say) must not hang us.
PLUGIN_LIMIT_S = 60.0


@dataclass(slots=True)
class Credentials:
    """The library's configuration and, for a kubeconfig, the loader that can renew it."""

    configuration: Any
    source: str
    loader: Any = None
    _loaded_at: float = field(default_factory=time.monotonic)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def headers(self) -> dict[str, str]:
        """The authorization header of a request made now; renews what is older than `REFRESH_S`."""
        # A plugin that gives no expiry is run again only when the API server refuses what it gave.
        is_lasting = self._has_plugin and not hasattr(self.loader, "exec_plugin_expiry")
        if not is_lasting and time.monotonic() - self._loaded_at > REFRESH_S:
            await self.renew(self._loaded_at)
        settings = await self.configuration.auth_settings()
        # A token file may end in a newline, which no header may hold.
        return {each["key"]: each["value"].strip() for each in settings.values() if each["value"]}

    @property
    def _has_plugin(self) -> bool:
        return self.loader is not None and _has_plugin(self.loader)

    @property
    def loaded_at(self) -> float:
        """When they were last read, on the monotonic clock."""
        return self._loaded_at

    async def renew(self, seen_at: float) -> bool:
        """Reads the credentials again, unless another request did since `seen_at`; False if it cannot.

        Failing keeps the old ones: the API server's answer to them says what is wrong. (The pod's own are
        renewed by the library, each minute.)
        """
        if self.loader is None:
            return False
        async with self._lock:
            if self._loaded_at != seen_at:
                return True
            try:
                async with asyncio.timeout(PLUGIN_LIMIT_S):
                    await self.loader.load_and_set(self.configuration)
            except (ConfigException, OSError, ValueError, TypeError, KeyError, AttributeError):
                pass
            finally:
                self._loaded_at = time.monotonic()
        return True


async def load(kubeconfig: str | None, context: str | None) -> Credentials:
    """Those of `kubeconfig`, else of $KUBECONFIG or ~/.kube/config, else the pod's; raises Misconfigured."""
    path = kubeconfig or _default_path()
    if path is None and context is None and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return _from_pod()
    if path is None:
        raise Misconfigured(
            "kubeconfig", "none is given and none is at ~/.kube/config", "give --kubeconfig PATH"
        )
    return await _from_file(path, context)


def _default_path() -> str | None:
    paths = os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    there = [path for path in paths.split(os.pathsep) if path and Path(path).expanduser().exists()]
    return os.pathsep.join(there) or os.environ.get("KUBECONFIG") or None


def _from_pod() -> Credentials:
    configuration = Configuration()
    try:
        load_incluster_config(configuration)
    except (ConfigException, OSError) as error:
        next_step = "mount the pod's ServiceAccount token, or give --kubeconfig PATH"
        raise Misconfigured("the pod's ServiceAccount", str(error), next_step) from error
    return Credentials(configuration, "the pod's ServiceAccount")


async def _from_file(path: str, context: str | None) -> Credentials:
    what = f"kubeconfig {path}"
    _check_readable(path, what)
    configuration = Configuration()
    try:
        async with asyncio.timeout(PLUGIN_LIMIT_S):
            loader = await load_kube_config(path, context, configuration, persist_config=False)
    except yaml.YAMLError as error:
        raise Misconfigured(what, f"is not YAML ({_first_line(error)})", "give a kubeconfig file") from error
    except TimeoutError as error:
        raise Misconfigured(
            what, "its credential plugin does not answer", "run it by hand to see why"
        ) from error
    except ConfigException as error:
        raise Misconfigured(what, _first_line(error), _next_step(path, context)) from error
    except (OSError, ValueError) as error:
        raise Misconfigured(what, _first_line(error), _next_step(path, context)) from error
    except (TypeError, KeyError, AttributeError) as error:  # the library trusts the file's shape
        raise Misconfigured(what, "is not a kubeconfig", _next_step(path, context)) from error
    _check_usable(loader, configuration, what)
    return Credentials(configuration, what, loader)


def _check_readable(paths: str, what: str) -> None:
    for path in filter(None, paths.split(os.pathsep)):
        try:
            Path(path).expanduser().read_bytes()
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise Misconfigured(what, why, "give the path of a readable kubeconfig") from error


def _check_usable(loader: Any, configuration: Any, what: str) -> None:
    chosen = loader.current_context["context"]
    cluster, user = chosen.get("cluster"), chosen.get("user")
    if "host" not in vars(loader):
        raise Misconfigured(what, f"cluster {cluster!r} names no server", "add its `server: https://...`")
    if not str(configuration.host).startswith(("http://", "https://")):
        why = f"the server of cluster {cluster!r} is no URL ({configuration.host})"
        raise Misconfigured(what, why, "write it as https://HOST:PORT")
    # The library logs a failed plugin and goes on without credentials; the refusals to come would mislead.
    if _has_plugin(loader) and not configuration.api_key and not configuration.cert_file:
        why = f"the credential plugin of user {user!r} gave no credentials"
        raise Misconfigured(what, why, "run its command by hand to see why")


def _has_plugin(loader: Any) -> bool:
    return loader._user is not None and "exec" in loader._user  # noqa: SLF001


def _next_step(path: str, context: str | None) -> str:
    if context:
        return f"see `kubectl --kubeconfig {path} config get-contexts` for the contexts it has"
    return f"check it with `kubectl --kubeconfig {path} cluster-info`"


def _first_line(error: Exception) -> str:
    # The library's texts may end in a whole entry of the file, its token included.
    text = re.sub(r"/?\{.*", "", str(error), flags=re.DOTALL) or type(error).__name__
    return " ".join(text.split())[:200]
