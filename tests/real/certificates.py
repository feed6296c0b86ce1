"""A certificate for a test server, of its own authority, as PEM for those who check it and as PKCS #12 for Java."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, pkcs12

KEYSTORE_PASSWORD = "cassandra"


def write_certificate(folder: Path, name: str, address: str) -> tuple[Path, Path]:
    """Writes `name`.crt and `name`.p12 for a server at an address; returns both paths."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate, keystore = folder / f"{name}.crt", folder / f"{name}.p12"
    certificate.write_bytes(made.public_bytes(Encoding.PEM))
    encryption = BestAvailableEncryption(KEYSTORE_PASSWORD.encode())
    keystore.write_bytes(pkcs12.serialize_key_and_certificates(name.encode(), key, made, None, encryption))
    return certificate, keystore
