"""Who may do what, on the command line: `gpubinder rbac`, and options of `gpubinder crds`."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import click
import yaml

from admission.writers import Accounts, writer_policies
from gpubinder.options import ENVIRONMENT, namespace_name
from gpubinder.rbac import LEASE_NAMESPACE, NAMESPACE, Places, rbac_of, user_name
from gpubinder.rights import Process

Json = dict[str, Any]
Command = Callable[..., Any]
_BINDERS = (Process.BIND, Process.UP)


def _namespace(name: str, text: str) -> Callable[[Command], Command]:
    return click.option(name, default=NAMESPACE, show_default=True, callback=namespace_name, help=text)


def _account(name: str, text: str) -> Callable[[Command], Command]:
    return click.option(name, multiple=True, metavar="USER", callback=_user_names, help=text)


def _user_names(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Whatever the API server may call a user; raises BadParameter for what it never does."""
    for value in values:
        if not value.strip() or not value.isprintable():
            raise click.BadParameter(f"{value!r} is no user's name")
    return values


_WRITING = (
    click.option(
        "--writers",
        type=click.Choice(["policy", "none"]),
        default="policy",
        show_default=True,
        help="Also print who may write what: ValidatingAdmissionPolicies (Kubernetes 1.30 and newer).",
    ),
    _namespace("--account-namespace", "Where gpubinder's accounts are: see gpubinder rbac."),
    _account(
        "--kubevirt-user",
        "Who makes launchers; may be repeated. Default: virt-controller's account in namespace kubevirt.",
    ),
    _account(
        "--binder-user",
        "Who runs gpubinder bind or up; may be repeated. Default: the accounts of gpubinder rbac.",
    ),
    _account(
        "--uninstall-user",
        "Who runs gpubinder uninstall; may be repeated. Default: the account of gpubinder rbac.",
    ),
)


def writing(command: Command) -> Command:
    """The options that say who may write what."""
    return reduce(lambda so_far, option: option(so_far), reversed(_WRITING), command)


def writers_of(options: dict[str, Any]) -> list[Json]:
    """The policies that the options ask for."""
    if options["writers"] == "none":
        return []
    namespace = options["account_namespace"]
    binders = tuple(user_name(process, namespace) for process in _BINDERS)
    return writer_policies(
        Accounts(
            options["kubevirt_user"] or Accounts().kubevirt,
            options["binder_user"] or binders,
            options["uninstall_user"] or (user_name(Process.UNINSTALL, namespace),),
        )
    )


@click.command(context_settings=ENVIRONMENT)
@_namespace("--namespace", "Where the accounts are; it must exist.")
@click.option(
    "--lease-namespace",
    default=LEASE_NAMESPACE,
    show_default=True,
    callback=namespace_name,
    help="Where the leader's Lease is, as given to the processes.",
)
@click.option(
    "--process",
    "processes",
    type=click.Choice([str(process) for process in Process]),
    multiple=True,
    help="Only for these; may be repeated. Default: all.",
)
def rbac(namespace: str, lease_namespace: str, processes: tuple[str, ...]) -> None:
    """Print an account and the least rights for each process, to be piped into kubectl apply -f -."""
    chosen = [Process(name) for name in processes] or list(Process)
    places = Places(namespace, lease_namespace)
    documents = [document for process in chosen for document in rbac_of(process, places)]
    click.echo(yaml.safe_dump_all(documents, sort_keys=False), nl=False)
