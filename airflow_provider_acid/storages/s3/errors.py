"""What S3 and the two libraries that speak to it say, as errors that name the object, the reason and the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus

from airflow_provider_acid.exceptions import ConfigurationError, NameTakenError, StorageError

_REMEDIES = {
    "NoSuchBucket": "check the bucket's name in the table's location, and the endpoint",
    "InvalidAccessKeyId": "check the access key in the Airflow connection or the environment, and the endpoint",
    "SignatureDoesNotMatch": "check the secret key in the Airflow connection or the environment",
    "ExpiredToken": "renew the temporary credentials",
    "InvalidToken": "renew the temporary credentials",
    "RequestTimeTooSkewed": "set this machine's clock",
    "AccessDenied": "check the credentials and this machine's clock, and grant them s3:ListBucket, s3:GetObject, "
    "s3:PutObject, s3:DeleteObject, s3:AbortMultipartUpload and s3:ListBucketMultipartUploads on the bucket",
    "PermanentRedirect": "set the option region to the bucket's, and check the endpoint",
    "TemporaryRedirect": "set the option region to the bucket's, and check the endpoint",
    "AuthorizationHeaderMalformed": "set the option region to the bucket's",
    "SlowDown": "try again later, with fewer compactions at once",
    "Unreachable": "check the endpoint, TLS settings and the network, and try again",
}
_OTHER = "see the store's own message, and try again"

_FATE_UNKNOWN = frozenset({"InternalError", "SlowDown", "ServiceUnavailable", "RequestTimeout", "503", "500"})
"""Codes, whatever the status is, after which the store may have done what was asked, or may yet do it."""

_CODES = {
    "NO_SUCH_BUCKET": "NoSuchBucket",
    "INVALID_ACCESS_KEY_ID": "InvalidAccessKeyId",
    "INVALID_CLIENT_TOKEN_ID": "InvalidAccessKeyId",
    "SIGNATURE_DOES_NOT_MATCH": "SignatureDoesNotMatch",
    "INVALID_SIGNATURE": "SignatureDoesNotMatch",
    "ACCESS_DENIED": "AccessDenied",
    "REQUEST_TIME_TOO_SKEWED": "RequestTimeTooSkewed",
    "SLOW_DOWN": "SlowDown",
    "NETWORK_CONNECTION": "Unreachable",
}
"""Arrow's codes."""

_ARROW = re.compile(r"AWS Error ([A-Z_]+) during (\w+) operation: (.*)", re.DOTALL)
_BY_STATUS: Mapping[int, str] = {
    HTTPStatus.FORBIDDEN: "AccessDenied",
    HTTPStatus.MOVED_PERMANENTLY: "PermanentRedirect",
}


class RefusedByStoreError(StorageError):
    """The store answered a request with an error.

    :param code: its code, ``PreconditionFailed`` for example.
    """

    def __init__(self, subject: str, reason: str, remedy: str, code: str) -> None:
        super().__init__(subject, reason, remedy)
        self.code = code

    @property
    def came_too_late(self) -> bool:
        """Whether a signed request was refused for its age; the code alone is that of any denial."""
        return self.code in ("AccessDenied", "ExpiredToken") and "expired" in self.reason


class NoAnswerError(StorageError):
    """Nothing came back, or that the store itself failed: it may have done what was asked, or may yet do it."""


@contextmanager
def store_errors(subject: str, doing: str) -> Iterator[None]:
    """Translate what boto3 raises.

    :param doing: what was tried, as in ``cannot be written``.
    :raises RefusedByStoreError: the store refused.
    :raises NoAnswerError: its answer did not come.
    :raises StorageError: the request could not be made, for example for want of credentials.
    """
    from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError, NoCredentialsError

    try:
        yield
    except ClientError as error:
        answer = error.response
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        code = str(answer.get("Error", {}).get("Code", ""))
        message = str(answer.get("Error", {}).get("Message", ""))
        raise refused(subject, doing, code, message, status) from error
    except NoCredentialsError as error:
        remedy = "name an Airflow connection, or give this process credentials by the environment, a profile or a role"
        raise StorageError(subject, f"{doing} (no credentials were found)", remedy) from error
    except (ConnectionError, HTTPClientError) as error:
        raise unreachable(subject, doing, str(error)) from error
    except BotoCoreError as error:
        raise StorageError(subject, f"{doing} ({error})", _OTHER) from error


def refused(subject: str, doing: str, code: str, message: str, status: int) -> RefusedByStoreError:
    """The error for a store's answer."""
    known = code if code in _REMEDIES or not code.isdigit() else _BY_STATUS.get(status, code)
    reason = f"{doing} ({' '.join(filter(None, (known, message)))})"
    return RefusedByStoreError(subject, reason, _REMEDIES.get(known, _OTHER), known)


def answer_error(subject: str, doing: str, code: str, message: str, status: int) -> StorageError:
    """The error for the answer to a request that was sent once.

    :returns: a :class:`NoAnswerError` where the store itself failed, which leaves open what it has done.
    """
    if status < HTTPStatus.INTERNAL_SERVER_ERROR and code not in _FATE_UNKNOWN:
        return refused(subject, doing, code, message, status)
    reason = f"{doing} ({' '.join(filter(None, (code or str(status), message)))})"
    return NoAnswerError(subject, reason, _REMEDIES.get(code, _OTHER))


def unreachable(subject: str, doing: str, words: str) -> NoAnswerError:
    """The error for a request to which nothing came back.

    :param words: what happened.
    """
    return NoAnswerError(subject, f"{doing} ({words})", _REMEDIES["Unreachable"])


def arrow_error(subject: str, doing: str, error: OSError) -> StorageError:
    """The error for what Arrow raises."""
    if isinstance(error, FileNotFoundError):
        return StorageError(subject, f"{doing} (it does not exist)", "check the location; it may have been removed")
    match = _ARROW.search(str(error))
    code = _CODES.get(match[1], match[1]) if match else ""
    words = f"{match[1]} during {match[2]}: {match[3]}" if match else str(error)
    return StorageError(subject, f"{doing} ({' '.join(words.split())})", _REMEDIES.get(code, _OTHER))


def name_taken(subject: str) -> NameTakenError:
    """The error for a name that exists."""
    return NameTakenError(subject, "exists already", "find out who wrote it before removing it")


def boto3_is_missing(subject: str, doing: str) -> ConfigurationError:
    """The error for what Arrow alone cannot do safely."""
    return ConfigurationError(
        subject, f"{doing} takes conditional requests, and boto3 is not installed", "pip install boto3 there"
    )
