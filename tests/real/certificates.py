"""A certificate for a test server, of its own authority, as PEM for those who check it and as PKCS #12 for Java."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, pkcs12

from tools.testenv.certificates import signed_for

KEYSTORE_PASSWORD = "cassandra"


def write_certificate(folder: Path, name: str, address: str) -> tuple[Path, Path]:
    """Writes `name`.crt and `name`.p12 for a server at an address; returns both paths."""
    key, made = signed_for(name, x509.IPAddress(ip_address(address)))
    certificate, keystore = folder / f"{name}.crt", folder / f"{name}.p12"
    certificate.write_bytes(made.public_bytes(Encoding.PEM))
    encryption = BestAvailableEncryption(KEYSTORE_PASSWORD.encode())
    keystore.write_bytes(pkcs12.serialize_key_and_certificates(name.encode(), key, made, None, encryption))
    return certificate, keystore
