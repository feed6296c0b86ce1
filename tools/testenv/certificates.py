"""A certificate for a test server, of its own authority."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


def signed_for(name: str, reached_as: x509.GeneralName) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    """Its key, and the certificate that the key has signed: valid for two days, and its own authority's."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectAlternativeName([reached_as]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return key, made


def write_pem(folder: Path, file: str, name: str, reached_as: x509.GeneralName) -> tuple[Path, Path]:
    """Writes `file`.crt and `file`.key for a server; returns both paths."""
    key, made = signed_for(name, reached_as)
    certificate, private = folder / f"{file}.crt", folder / f"{file}.key"
    certificate.write_bytes(made.public_bytes(Encoding.PEM))
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return certificate, private
