"""Which NameNode and DataNode is asked, how often, and what is made of what they say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.storages.hdfs import webhdfs_calls
from airflow_provider_acid.storages.hdfs.errors import storage_errors
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from airflow_provider_acid.storages.hdfs.webhdfs_calls import FileStatus, NameNodes, RemoteError
from airflow_provider_acid.storages.hdfs.webhdfs_session import Answer, NoAnswerError

A, B, DATA = "http://a:9870", "http://b:9870", "http://data:9864"
STATUS = {"pathSuffix": "", "type": "FILE", "length": 7, "fileId": 42, "owner": "hive", "permission": "1750"}
FOUND = Answer(200, {}, json.dumps({"FileStatus": STATUS}).encode())
GONE = NoAnswerError(A, "refuses connections", "see whether it runs")
POINTS_TO_DATA = Answer(307, {"Location": f"{DATA}/webhdfs/v1/t?op=X"}, b"")

Reply = Answer | Exception


TOKEN_ENDED = "org.apache.hadoop.security.token.SecretManager$InvalidToken: Token has expired"


def refusal(kind: str, message: str = "no", status: int = 403) -> Answer:
    return Answer(status, {}, json.dumps({"RemoteException": {"exception": kind, "message": message}}).encode())


def payload(data: bytes, length: int | None = None) -> Answer:
    return Answer(200, {"Content-Length": str(len(data) if length is None else length)}, data)


@dataclass
class Network:
    """Servers by address; each says the next of its replies, the last one for ever.

    :param asked: which server was asked for what.
    """

    replies: dict[str, list[Reply]] = field(default_factory=dict)
    asked: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    data_urls: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    closed: int = 0

    def reply(self, url: str, parameters: Mapping[str, str]) -> Answer:
        self.asked.append((url, parameters))
        replies = self.replies[url]
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply

    @property
    def servers(self) -> list[str]:
        return [url for url, _ in self.asked]


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    network = Network()

    class Session:
        def __init__(self, url: str, options: HdfsOptions) -> None:
            self._url = url

        def call(self, method: str, path: str, parameters: Mapping[str, str]) -> Answer:
            network.paths.append(path)
            return network.reply(self._url, parameters)

        def send(self, method: str, url: str, body: bytes | Iterator[bytes] | None) -> Answer:
            network.data_urls.append(url)
            if isinstance(body, bytes):
                network.bodies.append(body)
            return network.reply(DATA, {})

        def close(self) -> None:
            network.closed += 1

    monkeypatch.setattr(webhdfs_calls, "WebHdfsSession", Session)
    monkeypatch.setattr("time.sleep", lambda seconds: network.pauses.append(seconds) if seconds else None)
    return network


def name_nodes(*urls: str, umask: str = "022") -> NameNodes:
    return NameNodes(urls, HdfsOptions(umask=umask))


def always() -> bool:
    return True


def never() -> bool:
    return False


# NameNodes


@pytest.mark.parametrize("first", [refusal("StandbyException"), refusal("RetriableException"), GONE])
def test_a_namenode_that_is_not_active_is_left_for_the_next_for_good(network: Network, first: Reply) -> None:
    network.replies = {A: [first], B: [FOUND]}
    nodes = name_nodes(A, B)
    assert nodes.status("/t") == nodes.status("/t") == FileStatus("", "FILE", 7, 42, "hive", 0o1750)
    assert network.servers == [A, B, B]
    assert network.pauses == []


def test_a_fail_over_is_waited_for(network: Network) -> None:
    network.replies = {A: [refusal("StandbyException")], B: [refusal("StandbyException"), FOUND]}
    assert name_nodes(A, B).status("/t") is not None
    assert network.servers == [A, B, A, B]
    assert network.pauses == [0.5]


def test_where_no_namenode_is_active_the_search_ends(network: Network) -> None:
    network.replies = {A: [GONE], B: [refusal("StandbyException", "not active")]}
    with pytest.raises(NoAnswerError, match="http://a:9870: refuses connections"):
        name_nodes(A, B).status("/t")
    assert network.servers == [A, B] * 6
    assert network.pauses == [*webhdfs_calls.PAUSES_SECONDS, *webhdfs_calls.STANDBY_PAUSES_SECONDS]


def test_where_no_namenode_answers_it_is_told_sooner(network: Network) -> None:
    network.replies = {A: [GONE], B: [GONE]}
    with pytest.raises(NoAnswerError, match="http://a:9870: refuses connections"):
        name_nodes(A, B).status("/t")
    assert network.servers == [A, B] * 3
    assert network.pauses == list(webhdfs_calls.PAUSES_SECONDS)


def test_a_refusal_is_not_asked_for_again(network: Network) -> None:
    network.replies = {A: [refusal("AccessControlException", "Permission denied: user=joe\n\tat org.apache…")]}
    with pytest.raises(RemoteError, match=r"^AccessControlException: Permission denied: user=joe$"):
        name_nodes(A, B).status("/t")
    assert network.servers == [A]


@pytest.mark.parametrize("kind", ["FileNotFoundException", "ParentNotDirectoryException"])
def test_only_hdfs_own_word_makes_a_file_missing(network: Network, kind: str) -> None:
    network.replies = {A: [refusal(kind, status=404)]}
    assert name_nodes(A).status("/t") is None
    network.replies = {A: [Answer(404, {}, b"<html>Not Found")]}
    with pytest.raises(NoAnswerError, match="does not speak WebHDFS"):
        name_nodes(A).status("/t")


@pytest.mark.parametrize(
    "answer",
    [
        Answer(404, {}, b"It looks like you are making an HTTP request to a Hadoop IPC port."),
        Answer(200, {}, b"<html>Please log in"),
        Answer(200, {}, b"[]"),
        Answer(200, {}, b"{}"),
        Answer(200, {}, json.dumps({"FileStatus": {**STATUS, "fileId": "42"}}).encode()),
        Answer(403, {}, json.dumps({"message": "not authenticated by filter"}).encode()),
    ],
)
def test_what_is_no_webhdfs_is_said_to_be_none_and_not_asked_again(network: Network, answer: Answer) -> None:
    network.replies = {A: [answer]}
    with pytest.raises(NoAnswerError, match="does not speak WebHDFS") as caught:
        name_nodes(A).status("/t")
    assert "dfs.namenode.http-address" in caught.value.remedy
    assert network.servers == [A]


def test_a_file_has_no_children(network: Network) -> None:
    network.replies = {A: [Answer(200, {}, json.dumps({"FileStatuses": {"FileStatus": [STATUS]}}).encode())]}
    with pytest.raises(RemoteError, match="is a file"):
        name_nodes(A).children("/t/f")


def test_a_session_is_used_again_unless_its_connection_broke(network: Network) -> None:
    network.replies = {A: [FOUND, refusal("AccessControlException"), FOUND, GONE, FOUND]}
    nodes = name_nodes(A)
    nodes.status("/t")
    with pytest.raises(RemoteError):
        nodes.status("/t")
    nodes.status("/t")
    assert network.closed == 0
    nodes.status("/t")
    assert network.closed == 1


@pytest.mark.parametrize(("umask", "permission"), [("022", "755"), ("077", "700"), ("000", "777")])
def test_new_directories_get_what_the_umask_leaves(network: Network, umask: str, permission: str) -> None:
    network.replies = {A: [Answer(200, {}, b'{"boolean": true}')]}
    name_nodes(A, umask=umask).make_directories("/t/d")
    assert network.asked[0][1] == {"op": "MKDIRS", "permission": permission, "unmaskedpermission": "777"}


def test_a_directory_that_was_not_made_is_an_error(network: Network) -> None:
    network.replies = {A: [Answer(200, {}, b'{"boolean": false}')]}
    with pytest.raises(RemoteError, match="was not done"):
        name_nodes(A).make_directories("/t/d")


# Renames


def test_the_namenode_is_asked_to_check_the_target(network: Network) -> None:
    network.replies = {A: [Answer(200, {}, b"")]}
    name_nodes(A).rename("/t/a", "/t/b")
    assert network.asked == [(A, {"op": "RENAME", "destination": "/t/b", "renameoptions": "NONE"})]


def test_that_renames_are_checked_is_found_out_once(network: Network) -> None:
    network.replies = {A: [refusal("FileNotFoundException", status=404)]}
    nodes = name_nodes(A)
    nodes.require_checked_renames("/t")
    nodes.require_checked_renames("/t")
    assert len(network.asked) == 1
    assert network.asked[0][1]["destination"].startswith("/t/_no_such_file.")


def test_a_server_that_does_not_check_renames_is_refused(network: Network) -> None:
    network.replies = {A: [Answer(200, {}, b'{"boolean": false}')]}
    with pytest.raises(NoAnswerError, match="as HttpFS does"):
        name_nodes(A).require_checked_renames("/t")


def test_missing_rights_prove_nothing_about_renames(network: Network) -> None:
    network.replies = {A: [refusal("AccessControlException")]}
    nodes = name_nodes(A)
    for _ in range(2):
        with pytest.raises(RemoteError, match="AccessControlException"):
            nodes.require_checked_renames("/t")


# DataNodes


def test_a_datanode_that_fails_is_excluded_once(network: Network) -> None:
    network.replies = {A: [POINTS_TO_DATA], DATA: [GONE, GONE, payload(b"rows")]}
    assert name_nodes(A).read("/t/f", 3, 4) == b"rows"
    asked = [parameters for url, parameters in network.asked if url == A]
    assert [parameters.get("excludedatanodes") for parameters in asked] == [None, "data", None]
    assert asked[0] == {"op": "OPEN", "offset": "3", "length": "4"}


@pytest.mark.parametrize(
    "failure",
    [
        GONE,
        refusal("EOFException"),
        refusal("ConnectException"),
        payload(b"ro", 4),
        Answer(200, {}, b"ro"),
        Answer(307, {}, b""),
    ],
)
def test_data_is_asked_for_a_few_times_only(network: Network, failure: Reply) -> None:
    network.replies = {A: [POINTS_TO_DATA], DATA: [failure]}
    if isinstance(failure, Answer) and failure.status == 307:
        network.replies = {A: [failure]}
    with pytest.raises((NoAnswerError, RemoteError)):
        name_nodes(A).read("/t/f", 0, 4)
    assert network.servers.count(DATA) in (0, 3)


@pytest.mark.parametrize("prefix", ["/webhdfs/v1", "/gateway/default/webhdfs/data/v1"])
def test_a_name_is_not_composed_on_the_way_to_the_datanode(network: Network, prefix: str) -> None:
    network.replies = {A: [Answer(307, {"Location": f"{DATA}{prefix}/t/p=%C3%BC%252F/f?op=OPEN&x=%C3%BC"}, b"")]}
    network.replies[DATA] = [payload(b"rows")]
    name_nodes(A).read("/t/p=u\u0308%2F/f", 0, 4)
    assert network.data_urls == [f"{DATA}{prefix}/t/p%3Du%CC%88%252F/f?op=OPEN&x=%C3%BC"]


def test_the_only_datanode_is_asked_again(network: Network) -> None:
    nowhere = refusal("IOException", "Failed to find datanode, suggest to check cluster health.")
    network.replies = {A: [POINTS_TO_DATA, nowhere, POINTS_TO_DATA], DATA: [GONE, payload(b"rows")]}
    assert name_nodes(A).read("/t/f", 0, 4) == b"rows"
    assert [parameters.get("excludedatanodes") for url, parameters in network.asked if url == A] == [None, "data", ""]


def test_a_datanode_that_refuses_is_not_asked_again(network: Network) -> None:
    network.replies = {A: [POINTS_TO_DATA], DATA: [refusal("AccessControlException")]}
    with pytest.raises(RemoteError, match="AccessControlException"):
        name_nodes(A).read("/t/f", 0, 4)
    assert network.servers == [A, DATA]


@pytest.mark.parametrize(("may_repeat", "attempts"), [(always, 3), (never, 1)])
def test_a_body_is_sent_again_only_if_it_can_be(
    network: Network, may_repeat: Callable[[], bool], attempts: int
) -> None:
    network.replies = {A: [POINTS_TO_DATA], DATA: [GONE]}
    paths = [f"/t/_f.{number}.partial" for number in range(4)]
    left = iter(paths)
    with pytest.raises(NoAnswerError):
        name_nodes(A).create(lambda: next(left), b"rows", may_repeat)
    assert network.bodies == [b"rows"] * attempts
    # What is late in coming of one attempt cannot harm the next.
    assert network.paths == paths[:attempts]


def test_a_new_file_gets_no_parents_and_what_the_umask_leaves(network: Network) -> None:
    network.replies = {A: [POINTS_TO_DATA], DATA: [Answer(201, {}, b"")]}
    name_nodes(A, umask="027").create(lambda: "/t/_f.partial", b"rows", always)
    assert network.asked[0][1] == {
        "op": "CREATE",
        "overwrite": "false",
        "createparent": "false",
        "permission": "640",
        "unmaskedpermission": "666",
    }


# Errors


@pytest.mark.parametrize(
    ("answer", "remedy"),
    [
        (refusal("AccessControlException"), "proxy_user"),
        (refusal("SecurityException"), "hadoop.proxyuser"),
        (refusal("SecurityException", f"Failed to obtain user group information: {TOKEN_ENDED}"), "delegation tokens"),
        (refusal("SafeModeException"), "safe mode"),
        (refusal("DSQuotaExceededException"), "space quota"),
        (refusal("NSQuotaExceededException"), "name quota"),
        (refusal("StandbyException"), "active NameNode"),
        (refusal("UnheardOfException"), "NameNode's log"),
        (Answer(401, {}, b"<html>Authentication required"), "Kerberos ticket"),
        (GONE, "see whether it runs"),
    ],
)
def test_errors_name_object_operation_reason_and_remedy(network: Network, answer: Reply, remedy: str) -> None:
    network.replies = {A: [answer]}
    with (
        pytest.raises(StorageError, match="cannot be made") as caught,
        storage_errors("hdfs://ns1/t", "cannot be made"),
    ):
        name_nodes(A).make_directories("/t")
    assert caught.value.subject == "hdfs://ns1/t"
    assert remedy in caught.value.remedy
    assert caught.value.is_permanent is (remedy == "proxy_user")
