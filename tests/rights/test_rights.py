"""Each process runs with exactly the rights that it is given, and needs each of them (real RBAC)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

import pytest

from eventlog.adapters.embedded import EmbeddedServer
from gpubinder.rbac import rules_of
from gpubinder.rights import Home, Permission, Process, permissions_of
from tests.cluster.control_plane import READER, ControlPlane
from tests.cluster.rest import Rest
from tests.rights.applying import MERGE, NAMESPACE, Json, apply, enforce, refusal
from tests.rights.calls import PLACES, Call, calls_of, is_under
from tests.rights.story import live

pytestmark = [pytest.mark.envtest, pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.timeout(240)]

Calls = dict[Process, list[Call]]
EXACT = [process for process in Process if process is not Process.UP]
"""Whose story does all that it ever does; `up` is watch and bind together."""
TRIAL = "trial"
API = "rbac.authorization.k8s.io/v1"
LIMIT_S = 10.0


@pytest.fixture(scope="module")
def calls(own_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Calls:
    """What each process has asked for in the story."""
    enforce(own_plane)
    redis = EmbeddedServer()
    redis.start()
    try:
        asyncio.run(live(own_plane, tmp_path_factory.mktemp("rights"), redis.url))
    finally:
        redis.stop()
    users = {process: f"system:serviceaccount:{NAMESPACE}:gpubinder-{process}" for process in Process}
    users[Process.STATUS] = READER.name
    return {process: calls_of(own_plane, user) for process, user in users.items()}


@pytest.mark.parametrize("process", list(Process))
def test_process_is_refused_nothing_under_its_own_role(calls: Calls, process: Process) -> None:
    assert calls[process]
    assert [str(call) for call in calls[process] if call.status in (401, 403)] == []


@pytest.mark.parametrize("process", list(Process))
def test_process_asks_for_nothing_beyond_its_rights(calls: Calls, process: Process) -> None:
    """Nor does it live on a right that everybody has who has logged in."""
    granted = permissions_of(process)
    assert [str(call) for call in calls[process] if not any(is_under(call, one) for one in granted)] == []


@pytest.mark.parametrize("process", EXACT)
def test_process_has_no_right_that_it_does_not_use(calls: Calls, process: Process) -> None:
    unused = [
        one for one in permissions_of(process) if not any(is_under(call, one) for call in calls[process])
    ]
    assert [str(one) for one in unused] == []


@pytest.fixture(scope="module")
def trial(own_plane: ControlPlane) -> Rest:
    """An admin, beside a user for trials who has a role in each place, empty yet."""
    rest = own_plane.rest()
    for home in Home:
        body = role_of(home, ())
        apply(rest, body)
        reference = {"apiGroup": API.split("/", 1)[0], "kind": body["kind"], "name": TRIAL}
        bound = {"roleRef": reference, "subjects": [{"kind": "User", "name": TRIAL}]}
        apply(rest, body | {"kind": f"{body['kind']}Binding"} | bound)
    return rest


@pytest.mark.parametrize(
    ("process", "permission"),
    [
        pytest.param(process, permission, id=f"{process}: {permission}")
        for process in EXACT
        for permission in permissions_of(process)
    ],
)
def test_without_one_right_the_api_server_refuses_a_call_that_the_process_makes(
    trial: Rest, calls: Calls, process: Process, permission: Permission
) -> None:
    """So each right is needed, and none is given twice."""
    call = next(call for call in calls[process] if is_under(call, permission))
    granted = permissions_of(process)
    for home in Home:
        give(trial, home, granted)
    wait_allowed(trial, call, is_allowed=True)
    give(trial, permission.home, [one for one in granted if one != permission])
    wait_allowed(trial, call, is_allowed=False)
    headers = {"Impersonate-User": TRIAL, **MERGE}
    why = refusal(trial, call.method, call.uri, headers=headers)
    assert f"cannot {permission.verb} resource" in why


def role_of(home: Home, permissions: Iterable[Permission]) -> Json:
    """The trial user's role in one place."""
    namespace = PLACES.namespace_of(home)
    meta = {"name": TRIAL} | ({"namespace": namespace} if namespace else {})
    rules = rules_of(one for one in permissions if one.home is home)
    return {
        "apiVersion": API,
        "kind": "Role" if namespace else "ClusterRole",
        "metadata": meta,
        "rules": rules,
    }


def give(rest: Rest, home: Home, permissions: Iterable[Permission]) -> None:
    """Let the user for trials do this there, and nothing else."""
    namespace = PLACES.namespace_of(home)
    place = f"namespaces/{namespace}/roles" if namespace else "clusterroles"
    rest.request("PUT", f"/apis/{API}/{place}/{TRIAL}", role_of(home, permissions))


def wait_allowed(rest: Rest, call: Call, *, is_allowed: bool) -> None:
    """Until the API server's authorizer knows the roles: some milliseconds."""
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    review = {"spec": {"user": TRIAL, "resourceAttributes": call.attributes}}
    deadline = time.monotonic() + LIMIT_S
    while rest.request("POST", path, review)["status"]["allowed"] is not is_allowed:
        assert time.monotonic() < deadline, f"{call} is {'not ' if is_allowed else 'still '}allowed"
        time.sleep(0.01)
