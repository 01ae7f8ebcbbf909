"""Wrong use of any command: one line on stderr, exit code 2, nothing begun. In this process: it is quick."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from gpubinder.cli import main


def run(*arguments: str, **env: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="gpubinder", env=env)


def line_of(*arguments: str, **env: str) -> str:
    """The one line of a run that must be refused as wrong use."""
    done = run(*arguments, **env)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.output
    assert done.stderr.startswith("gpubinder: ")
    return done.stderr.strip()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--redis", "redis://127.0.0.1:1", "--data", "x"],
        ["--embedded", "--kubeconfig", "x"],
        ["--metrics-port", "99999"],
        ["--simulator-port", "-1"],
        ["--log-format", "xml"],
        ["--cluster", ""],
        ["--cluster", "a}b"],
        ["--lease-namespace", "Kube System"],
        ["--redis", ""],
        ["--kubeconfig", " "],
        ["--context", ""],
        ["--data", ""],
        ["--unknown"],
        ["word"],
    ],
    ids=" ".join,
)
def test_wrong_use_names_the_option_and_where_help_is(arguments: list[str]) -> None:
    line = line_of("up", *arguments)
    assert arguments[0] in line
    assert line.endswith("; see gpubinder up --help")


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (["nope"], "nope"),
        (["--nope"], "--nope"),
        (["watch"], "--redis"),
        (["bind", "--redis", "redis://h"], "--kubeconfig"),
        (["status"], "--redis"),
        (["watch", "--from", "/none"], "/none"),
        (["crds", "--gate", "wall"], "--gate"),
    ],
    ids=str,
)
def test_wrong_use_of_any_command_is_one_line(command: list[str], named: str) -> None:
    assert named in line_of(*command)


def test_url_in_the_wrong_place_keeps_its_password() -> None:
    assert "s3cret" not in line_of("up", "redis://:s3cret@127.0.0.1")


def test_line_holds_no_control_characters() -> None:
    assert "\x1b" not in line_of("up", "\x1b[31mred\n")


def test_picture_that_cannot_be_written_is_told_before_the_demo(tmp_path: Path) -> None:
    assert str(tmp_path / "none") in line_of("demo", "--picture", str(tmp_path / "none" / "demo.svg"))


@pytest.mark.parametrize(
    ("env", "named"),
    [
        ({"GPUBINDER_METRICS_PORT": "many"}, "--metrics-port"),
        ({"GPUBINDER_LOG_FORMAT": "xml"}, "--log-format"),
        ({"GPUBINDER_REDIS": "redis://h", "GPUBINDER_DATA": "d"}, "--data"),
        ({"GPUBINDER_EMBEDDED": "1", "GPUBINDER_KUBECONFIG": "k"}, "--embedded"),
    ],
    ids=str,
)
def test_options_are_read_from_the_environment(env: dict[str, str], named: str) -> None:
    """40-interfaces: GPUBINDER_<OPTION>, whatever the command."""
    assert named in line_of("up", **env)


def test_empty_variable_is_none() -> None:
    """As a chart's empty value makes it."""
    assert "--redis is needed" in line_of("bind", GPUBINDER_REDIS="")


def test_option_on_the_line_wins_over_the_environment() -> None:
    assert "'yml'" in line_of("up", "--log-format", "yml", GPUBINDER_LOG_FORMAT="xml")


def test_help_names_every_command_and_each_command_its_options() -> None:
    text = run("--help").stdout
    for name, command in main.commands.items():
        assert name in text
        shown = run(name, "--help")
        assert shown.exit_code == 0
        assert all(option in shown.stdout for parameter in command.params for option in parameter.opts)


def test_crds_are_printed_for_kubectl() -> None:
    kinds = [document["kind"] for document in yaml.safe_load_all(run("crds", "--writers", "none").stdout)]
    assert kinds == ["CustomResourceDefinition"] * 3 + [
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    ]
    assert len(list(yaml.safe_load_all(run("crds", "--gate", "none", "--writers", "none").stdout))) == 3
