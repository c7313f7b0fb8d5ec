"""A certificate authority of the tests, and what it signs."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509 import (
    AuthorityKeyIdentifier,
    BasicConstraints,
    Certificate,
    CertificateBuilder,
    DNSName,
    KeyUsage,
    Name,
    NameAttribute,
    NameOID,
    SubjectAlternativeName,
    SubjectKeyIdentifier,
    random_serial_number,
)

KEYSTORE_PASSWORD = "changeit"
_DAY = timedelta(days=1)


class CertificateAuthority:
    """Signs certificates for a day.

    :param folder: an existing one; its files are written there, ``ca.pem`` with the authority's own certificate first.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._signed("authority of the tests", self._key.public_key(), is_authority=True)
        self.file = folder / "ca.pem"
        self.file.write_bytes(self._certificate.public_bytes(Encoding.PEM))

    def pair(self, host: str, password: str | None = None) -> tuple[Path, Path]:
        """PEM files with a certificate for a host, and with its key."""
        key, certificate = self._issued(host)
        files = self._folder / f"{host}.pem", self._folder / f"{host}.key"
        protection: KeySerializationEncryption = NoEncryption()
        if password is not None:
            protection = BestAvailableEncryption(password.encode())
        files[0].write_bytes(certificate.public_bytes(Encoding.PEM))
        files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection))
        return files

    def keystore(self, host: str) -> Path:
        """A keystore for Java, of type PKCS12 with :data:`KEYSTORE_PASSWORD`, that proves to be a host."""
        key, certificate = self._issued(host)
        file = self._folder / f"{host}.p12"
        protection = BestAvailableEncryption(KEYSTORE_PASSWORD.encode())
        file.write_bytes(
            pkcs12.serialize_key_and_certificates(host.encode(), key, certificate, [self._certificate], protection)
        )
        return file

    @property
    def truststore(self) -> Path:
        """A keystore for Java, of type PKCS12 with :data:`KEYSTORE_PASSWORD`, by which it is trusted."""
        file = self._folder / "truststore.p12"
        trusted = pkcs12.PKCS12Certificate(self._certificate, b"authority")
        file.write_bytes(
            pkcs12.serialize_java_truststore([trusted], BestAvailableEncryption(KEYSTORE_PASSWORD.encode()))
        )
        return file

    def _issued(self, host: str) -> tuple[ec.EllipticCurvePrivateKey, Certificate]:
        key = ec.generate_private_key(ec.SECP256R1())
        return key, self._signed(host, key.public_key(), is_authority=False)

    def _signed(self, subject: str, key: ec.EllipticCurvePublicKey, *, is_authority: bool) -> Certificate:
        now = datetime.now(timezone.utc)
        builder = (
            CertificateBuilder()
            .subject_name(_name(subject))
            .issuer_name(_name("authority of the tests"))
            .public_key(key)
            .serial_number(random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + _DAY)
            .add_extension(BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(_usage(is_authority), critical=True)
            # Python 3.13 and later trust nothing without these two.
            .add_extension(SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if not is_authority:
            builder = builder.add_extension(SubjectAlternativeName([DNSName(subject)]), critical=False)
        return builder.sign(self._key, SHA256())


def _name(text: str) -> Name:
    return Name([NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(is_authority: bool) -> KeyUsage:
    return KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )
