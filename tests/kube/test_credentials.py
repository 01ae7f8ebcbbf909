"""Connection settings that cannot work: one line that names what is wrong, why, and the next step."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kube.adapters.http import connect
from kube.errors import Misconfigured
from tests.kube.fake_server import write_kubeconfig

SECRET = "s3cr3t-token"


async def refused(path: Path | str | None, context: str | None = None) -> str:
    with pytest.raises(Misconfigured) as caught:
        await connect(str(path) if path is not None else None, context)
    message = str(caught.value)
    assert "\n" not in message
    assert SECRET not in message
    assert caught.value.next_step in message
    return message


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


async def test_no_such_file(tmp_path: Path) -> None:
    path = tmp_path / "none"
    assert f"kubeconfig {path}: no such file" in await refused(path)


async def test_folder_is_no_kubeconfig(tmp_path: Path) -> None:
    assert "is a directory" in await refused(tmp_path)


@pytest.mark.parametrize(
    "content",
    ["", "a: [", "just text", "[]", "{}", "clusters: 5", "\x00", "contexts: [{name: x}]\ncurrent-context: x"],
)
async def test_file_that_is_no_kubeconfig(tmp_path: Path, content: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(content)
    assert str(path) in await refused(path)


async def test_unknown_context_tells_how_to_see_the_known_ones(tmp_path: Path) -> None:
    message = await refused(write_kubeconfig(tmp_path, token=SECRET), "elsewhere")
    assert "elsewhere" in message
    assert "config get-contexts" in message


async def test_cluster_without_a_server(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, token=SECRET)
    config = yaml.safe_load(path.read_text())
    for broken, wanted in (({}, "names no server"), ({"server": "nonsense"}, "is no URL")):
        config["clusters"][0]["cluster"] = broken
        path.write_text(yaml.safe_dump(config))
        assert wanted in await refused(path)


async def test_user_entry_that_is_broken_keeps_its_secret(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path)
    config = yaml.safe_load(path.read_text())
    config["users"] = [{"name": "u", "usr": {"token": SECRET}}]
    path.write_text(yaml.safe_dump(config))
    assert "user" in await refused(path)


async def test_certificate_that_is_none(tmp_path: Path) -> None:
    certificate = tmp_path / "ca.crt"
    certificate.write_text("nonsense")
    path = write_kubeconfig(tmp_path, server="https://127.0.0.1:1")
    config = yaml.safe_load(path.read_text())
    config["clusters"][0]["cluster"]["certificate-authority"] = str(certificate)
    path.write_text(yaml.safe_dump(config))
    assert "certificates" in await refused(path)
    config["clusters"][0]["cluster"]["certificate-authority"] = str(tmp_path / "none.crt")
    path.write_text(yaml.safe_dump(config))
    assert "none.crt" in await refused(path)


async def test_credential_plugin_that_fails(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path)
    config = yaml.safe_load(path.read_text())
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "false", "interactiveMode": "Never"}
    config["users"][0]["user"] = {"exec": plugin}
    path.write_text(yaml.safe_dump(config))
    assert "credential plugin of user 'u'" in await refused(path)


async def test_nothing_given_and_nothing_there() -> None:
    assert "--kubeconfig" in await refused(None)


async def test_kubeconfig_of_the_environment_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nonexistent/kubeconfig")
    assert "/nonexistent/kubeconfig" in await refused(None)


async def test_pod_without_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    assert "ServiceAccount" in await refused(None)
