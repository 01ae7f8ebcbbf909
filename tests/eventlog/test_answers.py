"""What servers answer when they are in trouble, as they word it, and what the user is told to do."""

from __future__ import annotations

import pytest
from redis._parsers.base import BaseParser

from eventlog.adapters.redis_answers import LogMoved, translated
from eventlog.errors import Fenced, LogRefused, LogReplaced, LogUnavailable

PASSING = [
    ("OOM command not allowed when used memory > 'maxmemory'.", "raise its maxmemory"),
    ("READONLY You can't write against a read only replica.", "primary"),
    ("LOADING Redis is loading the dataset in memory", "when it is ready"),
    ("LOADING Valkey is loading the dataset in memory", "when it is ready"),
    ("MISCONF Errors writing to the AOF file: No space left on device", "disk"),
    ("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist", "disk"),
    ("CLUSTERDOWN The cluster is down", "CLUSTER INFO"),
    ("CLUSTERDOWN Hash slot not served", "CLUSTER INFO"),
    ("TRYAGAIN Multiple keys request during rehashing of slot", "CLUSTER INFO"),
    ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "primary"),
    ("BUSY Redis is busy running a script. You can only call SCRIPT KILL", "SCRIPT KILL"),
    ("NOREPLICAS Not enough good replicas to write.", "min-replicas-to-write"),
    ("ERR max number of clients reached", "maxclients"),
    ("ERR something that nobody has seen yet", "its own log"),
]
REFUSED = [
    (
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user>",
        "asks for a password: give it as redis://:PASSWORD@HOST",
    ),
    ("NOAUTH Authentication required.", "password"),
    ("WRONGPASS invalid username-password pair or user is disabled.", "USER:PASSWORD"),
    ("NOPERM User x has no permissions to run the 'xadd' command", "docs/redis.md"),
    ("ERR The user executing the script can't run this command or subcommand script: 1, on @x:2.", "ACL"),
    ("ERR unknown command 'XAUTOCLAIM', with args beginning with:", "upgrade"),
    ("ERR DB index is out of range", "lower number"),
]


def raised(answer: str) -> Exception:
    try:
        with translated("redis://there:1"):
            raise BaseParser.parse_error(answer)
    except (Fenced, LogMoved, LogRefused, LogReplaced, LogUnavailable) as told:
        return told


@pytest.mark.parametrize(("answer", "step"), PASSING, ids=[answer[:20] for answer, _ in PASSING])
def test_passing_fault_is_waited_out_and_says_what_to_do(answer: str, step: str) -> None:
    found = raised(answer)
    assert isinstance(found, LogUnavailable)
    assert "redis://there:1" in str(found)
    assert step in str(found)


@pytest.mark.parametrize(("answer", "step"), REFUSED, ids=[answer[:20] for answer, _ in REFUSED])
def test_server_that_does_not_let_us_in_is_no_passing_fault(answer: str, step: str) -> None:
    found = raised(answer)
    assert isinstance(found, LogRefused)
    assert step in str(found)


def test_answers_of_our_own_scripts() -> None:
    assert isinstance(raised("REPLACED the log has another identity"), LogReplaced)
    assert isinstance(raised("NOGROUP No such key 'x' or consumer group"), LogReplaced)
    fenced = raised("FENCED 12")
    assert isinstance(fenced, Fenced)
    assert fenced.theirs == 12
    moved = raised("MOVED 3999 127.0.0.1:6381")
    assert isinstance(moved, LogMoved)
    assert (moved.host, moved.port) == ("127.0.0.1", 6381)


@pytest.mark.parametrize(("answer", "step"), PASSING, ids=[answer[:20] for answer, _ in PASSING])
def test_step_is_told_whatever_the_server_adds(answer: str, step: str) -> None:
    """A log line has room for 300 characters, and the step comes last."""
    for place in (f"script: {'f' * 40}, on @user_script:51.", "script: on @user_script:8."):
        told = str(raised(f"{answer} {place} {'x' * 1000}"))
        assert step in told[:300]
        assert "user_script" not in told


def test_full_server_is_not_told_of_options_that_there_are_not() -> None:
    assert "--" not in str(raised("OOM command not allowed when used memory > 'maxmemory'."))
