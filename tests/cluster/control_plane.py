"""A real Kubernetes control plane on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler.

RBAC is on, TLS is verified against the server's own certificate, users come from a static token file.
There is no kubelet: nodes are plain objects. Pods need no ServiceAccount (its admission plugin is off).
What gpubinder's own accounts ask for is written to an audit log.
Always holds: what `start` started is stopped by `stop`, by `start` itself when it fails, or by the watchdog
when the run is killed.
"""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster import crds
from tests.cluster.assets import Assets
from tests.cluster.processes import NotReady, Process, ProcessDied, free_ports, wait_for
from tests.cluster.rest import Rest
from tests.cluster.watchdog import Watchdog

Json = dict[str, Any]
RUNS = Path(__file__).parent / "runs"
# A port can be taken between the moment it was found free and the server's start.
START_ATTEMPTS = 3
# The folders of failed runs are read soon or never.
KEPT_DAYS = 7
CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "pod-garbage-collector-controller",
    "node-lifecycle-controller",
    "taint-eviction-controller",
    "resourcequota-controller",
)


@dataclass(frozen=True, slots=True)
class User:
    """Someone the API server knows by a static token."""

    name: str
    groups: tuple[str, ...] = ()

    @property
    def token(self) -> str:
        """The bearer token."""
        return f"token-of-{self.name.replace(':', '-')}"


ADMIN = User("admin", ("system:masters",))
TENANT = User("tenant")
KUBEVIRT_CONTROLLER = User("system:serviceaccount:kubevirt:kubevirt-controller", ("system:serviceaccounts",))
GPUBINDER = User("system:serviceaccount:gpubinder-system:gpubinder", ("system:serviceaccounts",))
READER = User("reader", ("gpubinder:readers",))
USERS = (ADMIN, TENANT, KUBEVIRT_CONTROLLER, GPUBINDER, READER)
AUDITED = ("system:serviceaccounts:gpubinder-system", "gpubinder:readers")
"""Groups: who they are and what they ask for, not what they send."""


@dataclass(slots=True)
class ControlPlane:
    """A running control plane, or (between start and readiness) the part of it that runs already."""

    folder: Path
    assets: Assets
    server: str = ""
    etcd: str = ""
    processes: list[Process] = field(default_factory=list)
    watchdog: Watchdog = field(default_factory=Watchdog)

    @property
    def ca_file(self) -> Path:
        """The certificate to verify the API server with."""
        return self.folder / "certs" / "apiserver.crt"

    @property
    def audit_log(self) -> Path:
        """An audit.k8s.io/v1 Event in JSON each line, complete when the answer has come."""
        return self.folder / "audit.log"

    def kubeconfig(self, user: User = ADMIN, token: str = "") -> Path:
        """The path of a kubeconfig for one of `USERS`, or for whoever a token of the API server's is."""
        path = self.folder / f"{user.name.replace(':', '-')}.kubeconfig"
        cluster = {"server": self.server, "certificate-authority": str(self.ca_file)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": user.name, "user": {"token": token or user.token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user.name}}],
            "current-context": "test",
        }
        path.write_text(json.dumps(config))  # JSON is YAML
        return path

    def rest(self, user: User = ADMIN) -> Rest:
        """A minimal client that shares no code with what is under test."""
        return Rest(self.server, user.token, self.ca_file)

    def process(self, name: str) -> Process:
        """The server of that name, e.g. `kube-apiserver`."""
        return next(each for each in self.processes if each.name == name)

    def check(self) -> None:
        """Raises ProcessDied when one of the servers has ended."""
        for process in self.processes:
            process.check()

    def openssl(self, *args: str) -> None:
        """Runs openssl in the folder; keys are made anew for each run."""
        if not shutil.which("openssl"):
            raise NotReady("no `openssl` on PATH, which makes the keys of a test cluster: install it")
        subprocess.run(["openssl", *args], cwd=self.folder, check=True, capture_output=True)

    def spawn(self, name: str, *flags: str) -> None:
        """Starts one of the binaries; its output goes to `<name>.log` in the folder."""
        self.run(self.assets.path(name), *flags)

    def run(self, executable: Path, *flags: str) -> None:
        """Starts another server beside them, in the same care."""
        log = self.folder / f"{executable.name}.log"
        process = Process([str(executable), *flags], log, self.folder)
        self.processes.append(process)
        self.watchdog.add(process.pid)

    def stop(self, *, keep_logs: bool = False) -> None:
        """Stops every process, last started first, and removes the folder unless its logs are wanted."""
        for each in reversed(self.processes):
            each.stop()
            self.watchdog.remove(each.pid)
        self.processes.clear()
        self.watchdog.close()
        if not keep_logs:
            shutil.rmtree(self.folder, ignore_errors=True)
            return
        shutil.rmtree(self.folder / "etcd", ignore_errors=True)


def start(assets: Assets, kinds: Sequence[Json] | None = None) -> ControlPlane:
    """A ready control plane with these CRDs (default: ours, and stand-ins for those of others).

    Raises ProcessDied or NotReady, and keeps the logs then.
    """
    RUNS.mkdir(exist_ok=True)
    _forget_old_runs()
    attempt = 1
    while True:
        plane = ControlPlane(Path(tempfile.mkdtemp(prefix="run-", dir=RUNS)), assets)
        try:
            _start_all(plane, crds.default() if kinds is None else kinds)
        except ProcessDied as died:
            taken = "address already in use" in str(died)
            plane.stop(keep_logs=not taken)
            if attempt == START_ATTEMPTS or not taken:
                raise
            attempt += 1
        except BaseException:
            plane.stop(keep_logs=True)
            raise
        else:
            return plane


def _forget_old_runs() -> None:
    for folder in RUNS.iterdir():
        with suppress(FileNotFoundError):  # another run may remove its own meanwhile
            if folder.stat().st_mtime < time.time() - KEPT_DAYS * 24 * 3600:
                shutil.rmtree(folder, ignore_errors=True)


def _start_all(plane: ControlPlane, kinds: Sequence[Json]) -> None:
    client_port, peer_port, api_port = free_ports(3)
    plane.server, plane.etcd = f"https://127.0.0.1:{api_port}", f"http://127.0.0.1:{client_port}"
    _write_credentials(plane)
    _spawn_etcd(plane, client_port, peer_port)
    _spawn_apiserver(plane, client_port, api_port)
    wait_for("kube-apiserver", lambda: _is_ready(plane), plane.processes)
    # Before kube-controller-manager: its garbage collector looks for new kinds only each half minute.
    crds.install(plane.rest(), kinds)
    wait_for("the CRDs", lambda: crds.are_established(plane.rest()), plane.processes)
    _spawn_controllers(plane)
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    wait_for("kube-controller-manager", lambda: plane.rest().exists(account), plane.processes)


def _is_ready(plane: ControlPlane) -> bool:
    try:
        return plane.ca_file.exists() and plane.rest().is_ready()
    except ssl.SSLError:  # the server is just writing its certificate
        return False


def _write_credentials(plane: ControlPlane) -> None:
    if not shutil.which("openssl"):
        raise NotReady(
            "no `openssl` on PATH, which makes the key that signs ServiceAccount tokens: install it"
        )
    plane.openssl("genrsa", "-out", "sa.key", "2048")
    plane.openssl("rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub")
    lines = [f'{user.token},"{user.name}",uid-{n},"{",".join(user.groups)}"' for n, user in enumerate(USERS)]
    (plane.folder / "tokens.csv").write_text("\n".join(lines) + "\n")
    rules = [{"level": "Metadata", "userGroups": list(AUDITED)}, {"level": "None"}]
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}
    stages = {"omitStages": ["RequestReceived"]}
    (plane.folder / "audit-policy.yaml").write_text(json.dumps(policy | stages))


def _spawn_etcd(plane: ControlPlane, client_port: int, peer_port: int) -> None:
    client, peer = (f"http://127.0.0.1:{port}" for port in (client_port, peer_port))
    plane.spawn(
        "etcd",
        *("--data-dir", "etcd", "--unsafe-no-fsync"),
        *("--listen-client-urls", client, "--advertise-client-urls", client),
        *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
        *("--initial-cluster", f"default={peer}"),
    )


def _spawn_apiserver(plane: ControlPlane, etcd_port: int, port: int) -> None:
    plane.spawn(
        "kube-apiserver",
        *("--etcd-servers", f"http://127.0.0.1:{etcd_port}"),
        *("--bind-address", "127.0.0.1", "--secure-port", str(port), "--cert-dir", "certs"),
        *("--service-account-issuer", "https://kubernetes.default"),
        *("--service-account-key-file", "sa.pub", "--service-account-signing-key-file", "sa.key"),
        *("--token-auth-file", "tokens.csv", "--authorization-mode", "RBAC"),
        *("--audit-policy-file", "audit-policy.yaml", "--audit-log-path", "audit.log"),
        *("--service-cluster-ip-range", "10.0.0.0/24", "--disable-admission-plugins", "ServiceAccount"),
    )


def _spawn_controllers(plane: ControlPlane) -> None:
    kubeconfig = str(plane.kubeconfig())
    common = ("--kubeconfig", kubeconfig, "--secure-port", "0", "--leader-elect=false")
    # Nodes are taken for dead after 12 s, so that a test of it need not wait for the usual 50 s.
    grace = ("--node-monitor-grace-period=12s", "--node-monitor-period=2s")
    account = ("--service-account-private-key-file", "sa.key")
    plane.spawn(
        "kube-controller-manager", *common, *grace, *account, f"--controllers={','.join(CONTROLLERS)}"
    )
    plane.spawn("kube-scheduler", *common)


__all__ = ["ADMIN", "USERS", "ControlPlane", "NotReady", "ProcessDied", "User", "start"]
