"""Certificates of our own: authorities that the API server trusts, and the one that we show it.

A certificate lives for a year and is replaced after two thirds of it. No request fails on the way: a new
authority is added beside the old one, it signs only once the webhook configurations have carried it for a
while, and the old one goes when it has run out. Must not know: where certificates are kept.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

YEAR_S = 365 * 24 * 3600
SKEW_S = 300
"""A certificate begins so much before it is made: the API server's clock may be behind ours."""
MAX_AUTHORITIES = 3
_ORGANISATION = "gpubinder"


class Unusable(ValueError):
    """What is kept is no certificate with its key."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes

    def parsed(self) -> x509.Certificate:
        """The certificate. Raises Unusable."""
        try:
            return x509.load_pem_x509_certificate(self.certificate)
        except ValueError as error:
            raise Unusable(f"no certificate: {error}") from None


@dataclass(frozen=True, slots=True)
class Material:
    """All of it; the newest authority first."""

    authorities: tuple[Pair, ...]
    serving: Pair

    @property
    def bundle(self) -> bytes:
        """What the API server is to trust."""
        return b"".join(pair.certificate for pair in self.authorities)


@dataclass(frozen=True, slots=True)
class Wish:
    """What is wanted: the names to be called by, from now on, for how long (s)."""

    names: tuple[str, ...]
    now: datetime
    life_s: int = YEAR_S


def first_material(wish: Wish) -> Material:
    """A new authority and a certificate of it: nobody trusts another one yet."""
    authority = _authority(wish)
    return Material((authority,), _serving(wish, authority))


def next_material(material: Material, wish: Wish, *, is_newest_trusted: bool) -> Material:
    """What shall be kept from now on: the same object when nothing is due. Raises Unusable.

    `is_newest_trusted`: the API servers have trusted the newest authority for a while.
    """
    kept = [pair for pair in material.authorities if pair.parsed().not_valid_after_utc > wish.now]
    if not kept or _is_due(kept[0], wish.now):
        kept.insert(0, _authority(wish))
        is_newest_trusted = len(kept) == 1
    kept = kept[:MAX_AUTHORITIES]
    signer = kept[0] if is_newest_trusted or len(kept) == 1 else kept[1]
    changed = material if tuple(kept) == material.authorities else replace(material, authorities=tuple(kept))
    serving = material.serving
    fitting = [signer] if is_newest_trusted else kept
    is_fit = any(_has_signed(one, serving) for one in fitting) and _names(serving) >= set(wish.names)
    if not is_fit or _is_due(serving, wish.now):
        changed = replace(changed, serving=_serving(wish, signer))
    return changed


def _is_due(pair: Pair, now: datetime) -> bool:
    """Whether two thirds of its life have passed."""
    certificate = pair.parsed()
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return now >= begins + (ends - begins) * 2 / 3


def _names(pair: Pair) -> set[str]:
    try:
        found = pair.parsed().extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    addresses = found.get_values_for_type(x509.IPAddress)
    return {*found.get_values_for_type(x509.DNSName), *map(str, addresses)}


def _has_signed(authority: Pair, serving: Pair) -> bool:
    try:
        serving.parsed().verify_directly_issued_by(authority.parsed())
    except Exception:  # noqa: BLE001 - of the library, for another issuer, a wrong signature or key type
        return False
    return True


def _authority(wish: Wish) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"gpubinder admission, {wish.now:%Y-%m-%d %H:%M:%S}")
    usage = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False,
        decipher_only=False,
    )  # fmt: skip
    builder = (
        _begun(wish, wish.now + timedelta(seconds=wish.life_s))
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(usage, critical=True)
    )
    return _pair(builder, key, key)


def _serving(wish: Wish, authority: Pair) -> Pair:
    """Signed by an authority, and never longer valid than it."""
    key, issuer = ec.generate_private_key(ec.SECP256R1()), authority.parsed()
    ends = min(wish.now + timedelta(seconds=wish.life_s), issuer.not_valid_after_utc)
    identifier = x509.SubjectKeyIdentifier.from_public_key(_private(authority).public_key())
    builder = (
        _begun(wish, ends)
        .subject_name(_name(wish.names[0][:64]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([_general(one) for one in wish.names]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False
        )
    )
    return _pair(builder, _private(authority), key)


def _begun(wish: Wish, ends: datetime) -> x509.CertificateBuilder:
    begins = wish.now - timedelta(seconds=min(SKEW_S, wish.life_s // 10))
    return (
        x509.CertificateBuilder()
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
    )


def _pair(
    builder: x509.CertificateBuilder, signer: ec.EllipticCurvePrivateKey, key: ec.EllipticCurvePrivateKey
) -> Pair:
    pem = serialization.Encoding.PEM
    certificate = builder.sign(signer, hashes.SHA256()).public_bytes(pem)
    plain = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Pair(certificate, plain)


def _private(pair: Pair) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(pair.key, None)
    except (ValueError, TypeError) as error:
        raise Unusable(f"no key: {error}") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise Unusable("the key is of another kind than ours")
    return key


def _name(text: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, _ORGANISATION),
            x509.NameAttribute(NameOID.COMMON_NAME, text),
        ]
    )


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def split_bundle(pem: bytes, what: bytes = b"CERTIFICATE") -> Sequence[bytes]:
    """The certificates or keys in a bundle, one PEM each."""
    mark = b"-----END " + what + b"-----"
    return [part.strip() + b"\n" + mark + b"\n" for part in pem.split(mark)[:-1]]
