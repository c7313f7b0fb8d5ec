"""The calls of WebHDFS that a storage needs, made to whichever NameNode is active.

See "WebHDFS REST API" in Hadoop's documentation. A call is repeated where its answer was lost; whoever makes one that
must not be done twice finds out what came of it (:meth:`WebHdfsStorage.publish`).
"""

from __future__ import annotations

import os
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from airflow_provider_acid.acid import json_fields
from airflow_provider_acid.acid.json_fields import JsonObject
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from airflow_provider_acid.storages.hdfs.webhdfs_session import Answer, NoAnswerError, WebHdfsSession, server_of

T = TypeVar("T")
R = TypeVar("R")

PAUSES_SECONDS = (0.5, 2.0)
"""Between the rounds over all NameNodes, where none of them answers."""
STANDBY_PAUSES_SECONDS = (4.0, 8.0, 15.0)
"""Further ones where one says that it is standby, or only starting: a fail-over takes as long as it takes to find out
that the other is dead, and as the last edits take to be read."""
DATA_ATTEMPTS = 3
"""How often a DataNode is asked for, each time another."""
PARALLEL_CALLS = 8

_TRY_ANOTHER = frozenset({"StandbyException", "RetriableException"})
# A DataNode keeps a connection to the NameNode for each user, and finds out late that the NameNode was restarted.
_LOST_ITS_NAMENODE = _TRY_ANOTHER | {
    "ConnectException",
    "ConnectTimeoutException",
    "EOFException",
    "NoRouteToHostException",
    "SocketTimeoutException",
}


class RemoteError(Exception):
    """HDFS refused a call.

    :param kind: simple name of the Java exception.
    :param message: its message, without the stack trace.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message

    @property
    def says_missing(self) -> bool:
        """Whether a file or directory does not exist; also one whose parent is a file.

        The latter is a question of rights to the NameNode, except for the superuser.
        """
        if self.kind == "AccessControlException":
            return self.message.endswith("(is not a directory)")
        return self.kind in ("FileNotFoundException", "ParentNotDirectoryException")


@dataclass(frozen=True)
class FileStatus:
    """What HDFS says about a file or directory.

    :param name: within the listed directory; empty where the path itself was asked for.
    :param kind: ``FILE``, ``DIRECTORY`` or ``SYMLINK``.
    :param file_id: the inode's; it survives renames and is never used again.
    :param owner: short name of the user it belongs to.
    :param mode: permission bits.
    """

    name: str
    kind: str
    size_bytes: int
    file_id: int
    owner: str
    mode: int


class NameNodes:
    """The NameNodes of one HDFS. May be used by any number of threads.

    :param urls: of their web servers.
    """

    def __init__(self, urls: tuple[str, ...], options: HdfsOptions) -> None:
        self._urls = urls
        self._options = options
        self._active = 0
        self._idle: dict[str, list[WebHdfsSession]] = {url: [] for url in urls}
        self._threads = ThreadPoolExecutor(PARALLEL_CALLS, "webhdfs")
        self._renames_are_checked = False

    def status(self, path: str) -> FileStatus | None:
        """The status of a path; None where nothing is there."""
        try:
            found = self._json("GET", path, {"op": "GETFILESTATUS"}).get("FileStatus")
        except RemoteError as error:
            if error.says_missing:
                return None
            raise
        return _file_status(self._urls[self._active], found)

    def children(self, path: str) -> list[FileStatus]:
        """What lies in a directory. HDFS pages within this one call, so nothing is left out.

        :raises RemoteError: also where the path is a file.
        """
        data = self._json("GET", path, {"op": "LISTSTATUS"}).get("FileStatuses")
        statuses = data.get("FileStatus") if isinstance(data, dict) else None
        if not isinstance(statuses, list):
            raise _no_webhdfs(self._urls[self._active], "a listing without FileStatus")
        found = [_file_status(self._urls[self._active], status) for status in statuses]
        if any(not status.name for status in found):
            raise RemoteError("ParentNotDirectoryException", f"{path} is a file")
        return found

    def home(self) -> str:
        """The path of the acting user's home directory, which need not exist."""
        path = self._json("GET", "/", {"op": "GETHOMEDIRECTORY"}).get("Path")
        if not isinstance(path, str) or not path.startswith("/"):
            raise _no_webhdfs(self._urls[self._active], "a home directory without Path")
        return path

    def may_change(self, path: str) -> bool:
        """Whether the acting user may make and remove names right in a directory, or make it where it is missing."""
        try:
            self._call("GET", path, {"op": "CHECKACCESS", "fsaction": "rwx"})
        except RemoteError as error:
            if error.kind == "AccessControlException":
                return False
            if error.kind == "FileNotFoundException" and path != "/":
                return self.may_change(path.rpartition("/")[0] or "/")
            raise
        return True

    def make_directories(self, path: str, mode: int = 0o777) -> None:
        """Make a directory and its parents; no error where it exists.

        :param mode: permission bits, from which the umask takes.
        """
        self._check_done(self._json("PUT", path, {"op": "MKDIRS", **self._permissions(mode)}), f"mkdirs {path}")

    def delete(self, path: str, *, recursive: bool) -> bool:
        """Delete a file or directory; whether there was one."""
        answer = self._json("DELETE", path, {"op": "DELETE", "recursive": str(recursive).lower()})
        return answer.get("boolean") is True

    def rename(self, source: str, target: str) -> None:
        """Rename to a name that does not exist, in one step of the NameNode.

        :raises RemoteError: it was not done, or the answer that it was done was lost.
        """
        answer = self._call("PUT", source, {"op": "RENAME", "destination": target, "renameoptions": "NONE"})
        if answer.content:
            raise _unchecked_rename(self._urls[self._active])

    def require_checked_renames(self, directory: str) -> None:
        """Make sure that the server heeds ``renameoptions``; without, a rename moves *into* an existing directory.

        HttpFS does not, and says only ``false`` where the source is missing. Asked once.

        :param directory: where the caller may write.
        """
        if self._renames_are_checked:
            return
        missing = f"{directory}/_no_such_file.{os.urandom(16).hex()}"
        try:
            self.rename(missing, f"{missing}.renamed")
        except RemoteError as error:
            if not error.says_missing:
                raise
            self._renames_are_checked = True

    def read(self, path: str, offset: int, length: int | None = None) -> bytes:
        """A part of a file, or all from ``offset`` on.

        :raises RemoteError: also where the offset is the end of the file.
        """
        parameters = {"op": "OPEN", "offset": str(offset)}
        if length is not None:
            parameters["length"] = str(length)

        def fetch(session: WebHdfsSession, url: str) -> bytes:
            answer = _checked(url, session.send("GET", url, None))
            expected = answer.headers.get("Content-Length", length)
            # A connection that just ends must not pass for the end of the file.
            if expected is None or len(answer.content) != int(expected):
                raise NoAnswerError(url, f"sent {len(answer.content)} of {expected} bytes", "try again")
            return answer.content

        return self._on_a_datanode("GET", lambda: path, parameters, fetch, lambda: True)

    def create(
        self, new_path: Callable[[], str], body: bytes | Iterator[bytes], may_repeat: Callable[[], bool]
    ) -> None:
        """Write a new file; its parent must exist.

        :param new_path: a path that was never used, for each attempt: an earlier one whose answer did not come may be
            carried out yet.
        :param may_repeat: whether the body can be sent once more.
        """
        parameters = {"op": "CREATE", "overwrite": "false", "createparent": "false", **self._permissions(0o666)}

        def send(session: WebHdfsSession, url: str) -> None:
            _checked(url, session.send("PUT", url, body))

        self._on_a_datanode("PUT", new_path, parameters, send, may_repeat)

    def parallel(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """The results of a function that makes calls; the function must not use this method."""
        if len(items) < 2:
            return [function(item) for item in items]
        return list(self._threads.map(function, items))

    def _on_a_datanode(
        self,
        method: str,
        path_of_attempt: Callable[[], str],
        parameters: Mapping[str, str],
        talk: Callable[[WebHdfsSession, str], T],
        may_repeat: Callable[[], bool],
    ) -> T:
        excluded: dict[str, str] = {}
        attempt = 0
        while True:
            attempt += 1
            url = self._datanode(method, path_of_attempt(), {**parameters, **excluded}, bool(excluded))
            try:
                with self._session(self._urls[self._active]) as session:
                    return talk(session, url)
            except (NoAnswerError, RemoteError) as error:
                is_passing = (
                    not error.is_final if isinstance(error, NoAnswerError) else error.kind in _LOST_ITS_NAMENODE
                )
                if not is_passing or attempt == DATA_ATTEMPTS or not may_repeat():
                    raise
                # The NameNode takes ten minutes to find out that a DataNode is dead. One may be busy only, or be the
                # only one that has the file, so the third attempt excludes none.
                excluded = {} if excluded else {"excludedatanodes": urlsplit(url).hostname or ""}

    def _datanode(self, method: str, path: str, parameters: Mapping[str, str], excludes_one: bool) -> str:
        """The URL on a DataNode that does what is asked for; on any where none but the excluded one can."""
        try:
            return _redirection(self._urls[self._active], path, self._call(method, path, parameters))
        except RemoteError as error:
            if not excludes_one or error.kind != "IOException":
                raise
            return self._datanode(method, path, {**parameters, "excludedatanodes": ""}, False)

    def _json(self, method: str, path: str, parameters: Mapping[str, str]) -> JsonObject:
        return _decoded(self._urls[self._active], self._call(method, path, parameters))

    def _call(self, method: str, path: str, parameters: Mapping[str, str]) -> Answer:
        """Ask the active NameNode; others, and again, where it is none or does not answer."""
        failure: NoAnswerError | RemoteError | None = None
        will_be_active = False
        for number, pause in enumerate((0.0, *PAUSES_SECONDS, *STANDBY_PAUSES_SECONDS)):
            if number > len(PAUSES_SECONDS) and not will_be_active:
                break
            time.sleep(pause)
            for _ in self._urls:
                place = self._active
                url = self._urls[place]
                try:
                    with self._session(url) as session:
                        return _checked(url, session.call(method, path, parameters))
                except NoAnswerError as error:
                    if error.is_final:
                        raise
                    failure = error
                except RemoteError as error:
                    if error.kind not in _TRY_ANOTHER:
                        raise
                    will_be_active = True
                    # That one is not active says less than that another cannot be reached.
                    failure = failure if isinstance(failure, NoAnswerError) else error
                self._leave(place)
        assert failure is not None
        raise failure

    def _leave(self, place: int) -> None:
        """Go on to the next NameNode, unless another thread has done so already."""
        if self._active == place:
            self._active = (place + 1) % len(self._urls)

    @contextmanager
    def _session(self, url: str) -> Iterator[WebHdfsSession]:
        idle = self._idle[url]
        try:
            session = idle.pop()
        except IndexError:
            session = WebHdfsSession(url, self._options)
        try:
            yield session
        except BaseException as error:
            # What the server said was heard to the end; any other failure leaves the connection in the midst of it.
            if not isinstance(error, RemoteError):
                session.close()
                raise
            idle.append(session)
            raise
        idle.append(session)

    def _permissions(self, bits: int) -> dict[str, str]:
        """As Hadoop's own client sends them: default ACLs of the parent are cut by the second only."""
        return {"permission": f"{bits & ~int(self._options.umask, 8):o}", "unmaskedpermission": f"{bits:o}"}

    def _check_done(self, answer: JsonObject, what: str) -> None:
        if answer.get("boolean") is not True:
            raise RemoteError("IOException", f"{what} was not done")


_clients: dict[tuple[int, tuple[str, ...], HdfsOptions], NameNodes] = {}


def name_nodes(urls: tuple[str, ...], options: HdfsOptions) -> NameNodes:
    """The process's connections to an HDFS; a process that was forked has its own."""
    key = (os.getpid(), urls, options)
    return _clients.get(key) or _clients.setdefault(key, NameNodes(urls, options))


def _checked(url: str, answer: Answer) -> Answer:
    """The answer, if it is none of an error."""
    if answer.status < 400:
        return answer
    if answer.status == 401:
        raise RemoteError("AuthenticationException", f"{server_of(url)} wants a Kerberos ticket (HTTP 401)")
    error = _decoded(url, answer).get("RemoteException")
    if not isinstance(error, dict):
        raise _no_webhdfs(url, f"HTTP {answer.status}")
    kind, message = str(error.get("exception")), str(error.get("message"))
    if "SecretManager$InvalidToken:" in message:
        kind = "InvalidToken"  # The servlet says SecurityException, as of one who may not act for another.
    raise RemoteError(kind, message.partition("\n")[0])


def _decoded(url: str, answer: Answer) -> JsonObject:
    try:
        return json_fields.decoded(answer.content, "answer")
    except ConfigurationError as error:
        said = answer.content[:80].decode(errors="replace")
        raise _no_webhdfs(url, f"HTTP {answer.status}, {said!r}") from error


def _redirection(url: str, path: str, answer: Answer) -> str:
    location = answer.headers.get("Location")
    if answer.status != 307 or location is None:
        raise _no_webhdfs(url, f"HTTP {answer.status} where it should name a DataNode")
    # NameNodes write composed characters (Unicode's NFC) in place of those of the name, which is another file's then.
    parts, composed = urlsplit(location), unicodedata.normalize("NFC", path)
    named = unquote(parts.path)
    if composed == path or not named.endswith(composed):
        return location
    return urlunsplit(parts._replace(path=quote(named.removesuffix(composed) + path)))


def _file_status(url: str, data: object) -> FileStatus:
    try:
        fields = json_fields.as_object(data, "FileStatus")
        return FileStatus(
            json_fields.text(fields, "pathSuffix"),
            json_fields.text(fields, "type"),
            json_fields.integer(fields, "length"),
            json_fields.integer(fields, "fileId"),
            json_fields.text(fields, "owner"),
            int(json_fields.text(fields, "permission"), 8),
        )
    except ConfigurationError as error:
        raise _no_webhdfs(url, f"{error.subject}: {error.reason}") from error
    except ValueError as error:
        raise _no_webhdfs(url, f"a permission that is no octal number: {error}") from error


def _no_webhdfs(url: str, what: str) -> NoAnswerError:
    return NoAnswerError(
        url,
        f"does not speak WebHDFS, it answers {what}",
        "set web_addresses to the NameNodes' web addresses (dfs.namenode.http-address, port 9870 as a rule)",
        is_final=True,
    )


def _unchecked_rename(url: str) -> NoAnswerError:
    return NoAnswerError(
        url,
        "ignores whether a rename's target exists, as HttpFS does",
        "set web_addresses to the NameNodes' own web addresses",
        is_final=True,
    )
