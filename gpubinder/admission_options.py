"""The options of admission: of the process that serves the webhooks, and of the command that prints them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import click

from admission.claims import Orders
from admission.reviewing import KUBEVIRT_USER, Rules
from admission.webhooks import PORT, Address
from gpubinder.settings import AdmissionChoice

Command = Callable[..., Any]
_USUAL = AdmissionChoice()
_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"


def _dns_label(_: click.Context, __: click.Parameter, value: str) -> str:
    if not re.fullmatch(_LABEL, value):
        raise click.BadParameter("lower-case letters, digits and dashes, 63 at most")
    return value


def _host_names(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if not re.fullmatch(r"[A-Za-z0-9.:-]{1,253}", value):
            raise click.BadParameter(f"{value!r} is no host name or address")
    return values


def _https(_: click.Context, __: click.Parameter, value: str) -> str:
    if value and not re.fullmatch(r"https://[^/?#@\s]+/?", value):
        raise click.BadParameter("write https://HOST:PORT")
    return value


def _in_namespace(_: click.Context, __: click.Parameter, value: str) -> str:
    if value and not re.fullmatch(rf"{_LABEL}/[a-z0-9]([-a-z0-9.]{{0,251}}[a-z0-9])?", value):
        raise click.BadParameter("write NAMESPACE/NAME")
    return value


_PLACE = (
    click.option(
        "--admission-namespace",
        default=_USUAL.address.namespace,
        show_default=True,
        callback=_dns_label,
        help="Where the webhooks' Service and Secret are.",
    ),
    click.option(
        "--admission-service",
        default=_USUAL.address.service,
        show_default=True,
        callback=_dns_label,
        help="The Service that the API server calls.",
    ),
)
_SERVING = (
    *_PLACE,
    click.option(
        "--orders",
        type=click.Choice([str(one) for one in Orders]),
        default=str(_USUAL.rules.orders),
        show_default=True,
        help="What becomes of an order that finds too few free units.",
    ),
    click.option(
        "--kubevirt-user",
        multiple=True,
        default=[KUBEVIRT_USER],
        show_default=True,
        metavar="USER",
        help="Who creates launchers, all others create raw pods; may be repeated.",
    ),
    click.option(
        "--binder-user",
        multiple=True,
        metavar="USER",
        help="Who creates the claims of VMs; may be repeated. Default: whoever names a VMI as controller.",
    ),
    click.option(
        "--admission-secret",
        default=_USUAL.secret,
        show_default=True,
        callback=_dns_label,
        help="Keeps the self-made certificates that all replicas share.",
    ),
    click.option(
        "--cert-dir",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Folder with tls.crt and tls.key, such as cert-manager's, instead of self-made ones.",
    ),
    click.option(
        "--cert-name",
        "cert_names",
        multiple=True,
        callback=_host_names,
        metavar="HOST",
        help="A further name or address that the self-made certificate carries.",
    ),
)


def serving_admission(default_port: int) -> Callable[[Command], Command]:
    """The options of a process that serves the webhooks."""
    text = "0 serves none." if not default_port else "Of the webhooks, HTTPS."
    port = click.option(
        "--admission-port",
        type=click.IntRange(min(default_port, 1), 65535),
        default=default_port,
        show_default=True,
        help=text,
    )
    return lambda command: _with(command, (port, *_SERVING))


def printing_webhooks(command: Command) -> Command:
    """The options of the command that prints the webhook configurations."""
    options = (
        *_PLACE,
        click.option(
            "--webhook-url",
            default="",
            callback=_https,
            metavar="URL",
            help="Call https://HOST:PORT instead of the Service.",
        ),
        click.option(
            "--cert-manager",
            default="",
            callback=_in_namespace,
            metavar="NAMESPACE/NAME",
            help="cert-manager's Certificate for the webhooks; default: gpubinder admit makes its own.",
        ),
    )
    return _with(command, options)


def admission_of(options: dict[str, Any]) -> AdmissionChoice:
    """How the webhooks are served; raises UsageError for options that exclude each other."""
    if options["cert_dir"] is not None and options["cert_names"]:
        raise click.UsageError("--cert-dir and --cert-name exclude each other: its certificate has its names")
    return AdmissionChoice(
        port=options["admission_port"],
        rules=Rules(
            orders=Orders(options["orders"]),
            kubevirt_users=options["kubevirt_user"],
            binder_users=options["binder_user"],
        ),
        address=Address(options["admission_namespace"], options["admission_service"]),
        secret=options["admission_secret"],
        certificate_folder=options["cert_dir"],
        names=options["cert_names"],
    )


def address_of(options: dict[str, Any]) -> Address:
    """Where the API server is to find the webhooks."""
    return Address(
        options["admission_namespace"],
        options["admission_service"],
        options["webhook_url"],
        options["cert_manager"],
    )


USUAL_PORT = PORT
"""Of `gpubinder admit`: what the printed Service leads to."""


def _with(command: Command, options: tuple[Callable[[Command], Command], ...]) -> Command:
    return reduce(lambda so_far, option: option(so_far), reversed(options), command)
