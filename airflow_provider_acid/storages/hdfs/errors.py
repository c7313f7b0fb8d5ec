"""What HDFS says, as errors that name the object, the reason and the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow_provider_acid.exceptions import ForbiddenError, StorageError
from airflow_provider_acid.storages.hdfs.webhdfs_calls import RemoteError
from airflow_provider_acid.storages.hdfs.webhdfs_session import NoAnswerError

_REMEDIES = {
    "AccessControlException": "give the user the right, or act for the tables' owner (proxy_user)",
    "AuthenticationException": "get a Kerberos ticket and set kerberos of the HDFS options",
    "AuthorizationException": "let the user act for the other (hadoop.proxyuser.* of the NameNodes)",
    "DSQuotaExceededException": "raise the directory's space quota, or free space below it",
    "FileAlreadyExistsException": "find out who made it before removing it",
    "FileNotFoundException": "check the location in the metastore; somebody may have dropped the table meanwhile",
    "InvalidToken": "let the task try again, which gets new delegation tokens; for jobs that last longer give Spark a "
    "ticket in place of keytab and principal (docs/deploy.md)",
    "NSQuotaExceededException": "raise the directory's name quota, or remove files below it",
    "ParentNotDirectoryException": "check the location in the metastore; a file stands where a directory should",
    "PathIsNotDirectoryException": "check the location in the metastore; a file stands where a directory should",
    "QuotaByStorageTypeExceededException": "raise the directory's quota of this storage type, or free space below it",
    "RetriableException": "try again when the NameNode has started",
    "SafeModeException": "wait until the NameNode leaves safe mode (hdfs dfsadmin -safemode get)",
    "SecurityException": "let the user act for the other (hadoop.proxyuser.* of the NameNodes)",
    "StandbyException": "name the active NameNode in web_addresses, too, or wait for the fail-over to end",
}
_OTHER_REMEDY = "see the NameNode's log"

SYMBOLIC_LINK_REMEDY = "replace it by the file or directory itself"


@contextmanager
def storage_errors(uri: str, operation: str) -> Iterator[None]:
    """Translate what a call raises.

    :param uri: of the file or directory that the calls are about.
    :param operation: a clause that says what is not possible, as ``cannot be listed``.
    :raises ForbiddenError: in place of the calls' own errors, where the user has not the right.
    :raises StorageError: of all others.
    """
    try:
        yield
    except RemoteError as error:
        kind = ForbiddenError if error.kind == "AccessControlException" else StorageError
        raise kind(uri, f"{operation} ({error})", remedy_for(error.kind)) from error
    except NoAnswerError as error:
        raise StorageError(uri, f"{operation} ({error})", error.remedy) from error


def remedy_for(kind: str) -> str:
    """What can be done about an exception of HDFS.

    :param kind: the simple name of its Java class.
    """
    return _REMEDIES.get(kind, _OTHER_REMEDY)
