"""A real kube-scheduler that tells, for each pod, every node that it would take.

The API server has no controllers beside it: nothing taints nodes, binds volumes or deletes pods. The
scheduler asks an extender (this process) about the nodes that passed all of its filters for a pod; the
extender notes them down and lets none pass, so nothing is ever bound and every pod meets the same cluster. A
pod that no node passes for never reaches the extender: it gets PodScheduled=False.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import mkdtemp

from tests.cluster import control_plane as harness
from tests.cluster.assets import Assets
from tests.cluster.control_plane import ControlPlane
from tests.cluster.processes import free_ports, wait_for

GATES = "TaintTolerationComparisonOperators=true"
"""Off by default in this version; on here, so that all that a server can serve is compared."""
RETRY_S = 3600
"""A pod is judged once: its next try lies beyond the end of the run."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Says nothing: the scheduler's end closes its connections."""


class Extender:
    """What the scheduler found: the nodes that passed, by the pod's name."""

    def __init__(self) -> None:
        self.passed: dict[str, frozenset[str]] = {}
        passed = self.passed

        class Answers(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                passed[asked["Pod"]["metadata"]["name"]] = frozenset(asked["NodeNames"])
                body = b'{"NodeNames": [], "FailedNodes": {}}'
                head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                self.wfile.write(head % len(body) + body)

            def log_message(self, *_: object) -> None:
                """Says nothing: a request a pod."""

        self._server = _Server(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def start_api_server(assets: Assets) -> ControlPlane:
    """etcd and kube-apiserver, ready."""
    harness.RUNS.mkdir(exist_ok=True)
    plane = ControlPlane(Path(mkdtemp(prefix="run-", dir=harness.RUNS)), assets)
    try:
        client_port, peer_port, api_port = free_ports(3)
        plane.server, plane.etcd = f"https://127.0.0.1:{api_port}", f"http://127.0.0.1:{client_port}"
        harness._write_credentials(plane)
        harness._spawn_etcd(plane, client_port, peer_port)
        plane.spawn(
            "kube-apiserver",
            *("--etcd-servers", plane.etcd, "--bind-address", "127.0.0.1", "--secure-port", str(api_port)),
            *("--cert-dir", "certs", "--service-account-issuer", "https://kubernetes.default"),
            *("--service-account-key-file", "sa.pub", "--service-account-signing-key-file", "sa.key"),
            *("--token-auth-file", "tokens.csv", "--authorization-mode", "RBAC"),
            *("--service-cluster-ip-range", "10.0.0.0/24", "--feature-gates", GATES),
            # No node is tainted as not ready: its conditions are what a test says.
            *("--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition"),
            *("--enable-priority-and-fairness=false", "--max-requests-inflight=0"),
        )
        wait_for("kube-apiserver", lambda: harness._is_ready(plane), plane.processes)
        namespace = "/api/v1/namespaces/default"
        wait_for("the default namespace", lambda: plane.rest().exists(namespace), plane.processes)
    except BaseException:
        plane.stop(keep_logs=True)
        raise
    return plane


def start_scheduler(plane: ControlPlane, extender: Extender) -> None:
    """kube-scheduler with its default filters, all nodes looked at, and the extender."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(plane.kubeconfig()), "qps": 5000, "burst": 5000},
        "leaderElection": {"leaderElect": False},
        "parallelism": 2,
        "percentageOfNodesToScore": 100,
        "podInitialBackoffSeconds": RETRY_S,
        "podMaxBackoffSeconds": RETRY_S,
        "profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "DefaultPreemption"}]}}}],
        "extenders": [
            {
                "urlPrefix": extender.url,
                "filterVerb": "filter",
                "nodeCacheCapable": True,
                "httpTimeout": "30s",
                "weight": 1,
            }
        ],
    }
    path = plane.folder / "scheduler.json"
    path.write_text(json.dumps(config))
    plane.spawn("kube-scheduler", "--config", str(path), "--secure-port", "0", "--feature-gates", GATES)
