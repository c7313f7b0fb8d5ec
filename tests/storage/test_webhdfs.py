"""What is particular to HDFS over HTTP, on a real NameNode and DataNode."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.exceptions import NameTakenError, StorageError
from airflow_provider_acid.storages.hdfs.streamed_file import CHUNK_BYTES
from airflow_provider_acid.storages.hdfs.webhdfs import WebHdfsStorage
from airflow_provider_acid.storages.hdfs.webhdfs_calls import NameNodes
from airflow_provider_acid.storages.hdfs.webhdfs_session import WebHdfsSession
from tests.harness.hdfs_server import HdfsServer
from tests.harness.ports import free_port
from tests.storage.hdfs_site import ODD_NAMES, HdfsSite
from tests.storage.hdfs_stores import USER

PATIENCE_SECONDS = 30


@pytest.fixture
def site(hdfs: HdfsServer) -> HdfsSite:
    return HdfsSite(hdfs)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests made, by method and operation."""
    made: list[str] = []
    send = WebHdfsSession.send

    def noting(self: WebHdfsSession, method: str, url: str, body: Any) -> Any:
        asked = parse_qs(urlsplit(url).query)
        made.append(f"{method} {'data' if 'namenoderpcaddress' in asked else asked['op'][0]}")
        return send(self, method, url, body)

    monkeypatch.setattr(WebHdfsSession, "send", noting)
    return made


# Names


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_are_taken_as_they_are(hdfs: HdfsServer, name: str) -> None:
    site = HdfsSite(hdfs, name)
    storage = site.web()
    storage.make_directory(f"_staging/{name}")
    storage.write_new(f"_staging/{name}/{name}", b"rows")
    storage.publish(f"_staging/{name}", name)
    storage.delete(["_staging"])
    assert storage.list() == Listing((FileEntry(f"{name}/{name}", 4),), (name,))
    assert storage.read(f"{name}/{name}") == b"rows"
    assert site.administrator.names() == {f"{name}/", f"{name}/{name}"}


@pytest.mark.parametrize("form", ["hdfs://{authority}{path}", "hdfs://{path}", "webhdfs://{web}{path}/", "hdfs:{path}"])
def test_every_spelling_of_a_location_means_the_same_directory(site: HdfsSite, form: str) -> None:
    site.web().write_new("f", b"1")
    authority, _, path = site.location.removeprefix("hdfs://").partition("/")
    web = site.server.web_address.removeprefix("http://")
    location = form.format(authority=authority, path=f"/{path}", web=web)
    storage = WebHdfsStorage(location, site.options)
    assert storage.location == location
    assert storage.list() == Listing((FileEntry("f", 1),))


# Several NameNodes


class Standby(BaseHTTPRequestHandler):
    """A NameNode that is not active."""

    asked: list[str]

    def answer(self) -> None:
        self.asked.append(self.command)
        body = json.dumps(
            {
                "RemoteException": {
                    "exception": "StandbyException",
                    "javaClassName": "org.apache.hadoop.ipc.StandbyException",
                    "message": "Operation category READ is not supported in state standby",
                }
            }
        ).encode()
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_DELETE = answer  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def standby() -> Iterator[tuple[str, list[str]]]:
    """Its address and what it was asked."""
    asked: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("OneStandby", (Standby,), {"asked": asked}))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}", asked
    server.shutdown()
    server.server_close()
    thread.join()


def exercise(storage: WebHdfsStorage) -> None:
    storage.make_directory("_staging/rows")
    storage.write_new("_staging/rows/bucket_00000", b"rows")
    storage.publish("_staging/rows", "base_1")
    storage.delete(["_staging"])
    assert storage.read("base_1/bucket_00000") == b"rows"
    assert storage.list().directories == ("base_1",)


def test_a_standby_is_asked_once_and_the_active_namenode_from_then_on(
    site: HdfsSite, standby: tuple[str, list[str]]
) -> None:
    address, asked = standby
    exercise(site.web(web_addresses=(address, site.server.web_address)))
    assert len(asked) == 1


def test_a_namenode_that_is_down_does_not_matter_while_another_is_up(site: HdfsSite) -> None:
    exercise(site.web(web_addresses=(f"localhost:{free_port()}", site.server.web_address)))


def test_where_all_are_standby_the_error_says_so(site: HdfsSite, standby: tuple[str, list[str]]) -> None:
    storage = site.web(web_addresses=(standby[0],), authorities=(f"localhost:{site.server.port}",))
    with pytest.raises(StorageError, match="StandbyException") as caught:
        storage.list()
    assert "active NameNode" in caught.value.remedy


# Whose files they are


def test_new_files_belong_to_the_user_and_to_the_group_of_their_directory(site: HdfsSite) -> None:
    site.administrator.call("PUT", "", "SETOWNER", owner=USER, group="analysts")
    storage = site.web()
    storage.make_directory("_staging/rows")
    storage.write_new("_staging/rows/bucket_00000", b"rows")
    storage.publish("_staging/rows", "base_1")
    for path, permission in (("base_1", "755"), ("base_1/bucket_00000", "644"), ("_staging", "755")):
        status = site.status(path)
        assert (status["owner"], status["group"], status["permission"]) == (USER, "analysts", permission)


@pytest.mark.parametrize(("umask", "directory", "file"), [("077", "700", "600"), ("002", "775", "664")])
def test_the_umask_is_that_of_the_options(site: HdfsSite, umask: str, directory: str, file: str) -> None:
    storage = site.web(umask=umask)
    storage.make_directory("d")
    storage.write_new("d/f", b"1")
    storage.write_new("d/large", bytes(3 * CHUNK_BYTES))
    assert [site.status(path)["permission"] for path in ("d", "d/f", "d/large")] == [directory, file, file]


def test_default_acls_are_inherited_as_with_hadoops_own_client(site: HdfsSite) -> None:
    acl = "default:user::rwx,default:group::r-x,default:group:analysts:rwx,default:mask::rwx,default:other::---"
    site.administrator.call("PUT", "", "MODIFYACLENTRIES", aclspec=acl)
    storage = site.web()
    storage.make_directory("d")
    storage.write_new("d/f", b"1")
    for path, mask in (("d", "rwx"), ("d/f", "rw-")):
        status = site.administrator.call("GET", path, "GETACLSTATUS").json()["AclStatus"]
        assert "group:analysts:rwx" in status["entries"]
        # HDFS shows the mask in place of the group's permissions.
        assert int(status["permission"][-2]) == {"rwx": 7, "rw-": 6}[mask]


def test_work_on_behalf_of_the_tables_owner_is_done_with_his_rights(site: HdfsSite) -> None:
    site.administrator.call("PUT", "", "SETPERMISSION", permission="700")
    storage = site.web(user=site.server.superuser, proxy_user=USER)
    exercise(storage)
    assert site.status("base_1/bucket_00000")["owner"] == USER


def test_whoever_may_not_act_for_others_is_told_where_that_is_set(site: HdfsSite) -> None:
    with pytest.raises(StorageError, match="not allowed to impersonate") as caught:
        site.web(user="joe", proxy_user=USER).list()
    assert "hadoop.proxyuser" in caught.value.remedy


# Number of calls


def test_a_listing_takes_one_call_per_directory(site: HdfsSite, calls: list[str]) -> None:
    storage = site.web()
    for name in ("base_1", "delta_2_2", "delta_3_3/sub"):
        site.administrator.make_directory(name)
    storage.list()
    assert calls == ["GET LISTSTATUS"] * 5


def test_every_operation_takes_few_calls(site: HdfsSite, calls: list[str]) -> None:
    storage = site.web()
    storage.write_new("first", b"1")

    def made() -> str:
        done = ", ".join(calls)
        calls.clear()
        return done

    made()
    storage.write_new("f", b"1")
    assert made() == "PUT CREATE, PUT data, GET GETFILESTATUS, PUT RENAME"
    with storage.create("large") as file:
        for _ in range(20):
            file.write(bytes(CHUNK_BYTES))
    assert made() == "PUT CREATE, PUT data, GET GETFILESTATUS, PUT RENAME"
    storage.publish("f", "g")
    assert made() == "GET GETFILESTATUS, PUT RENAME"
    assert storage.exists("g")
    assert made() == "GET GETFILESTATUS"
    storage.read("g")
    assert made() == "GET GETFILESTATUS, GET OPEN, GET data"
    storage.make_directory("d/e")
    assert made() == "GET GETFILESTATUS, PUT MKDIRS, GET GETFILESTATUS"
    storage.delete(["d", "g", "missing"])
    assert sorted(made().split(", ")) == ["DELETE DELETE"] * 3


def test_only_what_is_read_is_fetched(site: HdfsSite, calls: list[str]) -> None:
    storage = site.web()
    data = bytes(range(256)) * (12 * 4096)
    with storage.create("bucket_00000") as output:
        output.write(data)
    calls.clear()
    with storage.open_input("bucket_00000") as file:
        file.seek(-16384, 2)
        assert file.read() == data[-16384:]
        file.seek(5_000_000)
        assert file.read(100) == data[5_000_000:5_000_100]
        assert calls == ["GET GETFILESTATUS"] + ["GET OPEN", "GET data"] * 2


# What others do meanwhile


@pytest.mark.parametrize("size", [10, 5 * CHUNK_BYTES])
def test_a_task_whose_staging_is_gone_finds_no_place_to_write_to(site: HdfsSite, size: int) -> None:
    storage = site.web()
    with pytest.raises(StorageError, match="cannot be written") as caught:
        storage.write_new("_staging/attempts/bucket_00000", bytes(size))
    assert "directory" in caught.value.reason
    assert site.administrator.names() == set()


@pytest.mark.parametrize("size", [10, 5 * CHUNK_BYTES])
def test_a_staging_that_is_removed_during_a_write_does_not_come_back(site: HdfsSite, size: int) -> None:
    storage = site.web()
    storage.make_directory("_staging")

    def write() -> None:
        with storage.create("_staging/bucket_00000") as file:
            file.write(bytes(size))
            site.administrator.call("DELETE", "_staging", "DELETE", recursive="true")

    with pytest.raises(StorageError, match="cannot be written"):
        write()
    assert site.administrator.names() == set()


def test_a_file_of_which_the_server_holds_only_a_part_is_not_published(
    site: HdfsSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = NameNodes.create

    def lose_the_end(self: NameNodes, new_path: Any, body: Any, may_repeat: Any) -> None:
        create(self, new_path, body[:-1], may_repeat)

    monkeypatch.setattr(NameNodes, "create", lose_the_end)
    with pytest.raises(StorageError, match="4 bytes were written, what was written has 3 bytes"):
        site.web().write_new("f", b"rows")
    assert site.administrator.names() == set()


def test_nothing_is_left_in_a_location_that_is_dropped_while_a_directory_is_made(
    site: HdfsSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = site.web()
    make = NameNodes.make_directories
    site.parent.give_away("")

    def make_too_late(self: NameNodes, path: str) -> None:
        site.administrator.call("DELETE", "", "DELETE", recursive="true")
        make(self, path)

    monkeypatch.setattr(NameNodes, "make_directories", make_too_late)
    with pytest.raises(StorageError, match="does not exist"):
        storage.make_directory("_staging/rows")
    assert site.parent.names() == {"t/"}


def test_a_table_that_was_made_again_meanwhile_keeps_what_is_in_it(
    site: HdfsSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = site.web()
    make = NameNodes.make_directories

    def make_in_another(self: NameNodes, path: str) -> None:
        site.administrator.call("DELETE", "", "DELETE", recursive="true")
        site.administrator.make_directory("")
        site.administrator.call("PUT", "", "MKDIRS")
        site.administrator.give_away("")
        site.administrator.write("delta_1_1", b"rows")
        make(self, path)

    monkeypatch.setattr(NameNodes, "make_directories", make_in_another)
    with pytest.raises(StorageError, match="does not exist"):
        storage.make_directory("_staging/rows")
    assert site.administrator.names() == {"delta_1_1"}


def test_a_rename_that_was_done_twice_over_is_told_from_somebody_elses(
    site: HdfsSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = site.web()
    rename = NameNodes.rename

    def rename_and_again(self: NameNodes, source: str, target: str) -> None:
        # As after a lost reply: the first is done, and only the second answers.
        rename(self, source, target)
        rename(self, source, target)

    monkeypatch.setattr(NameNodes, "rename", rename_and_again)
    storage.write_new("plan.json", b"1")
    assert storage.read("plan.json") == b"1"
    with pytest.raises(NameTakenError):
        storage.write_new("plan.json", b"2")
    assert site.administrator.names() == {"plan.json"}


# What bad input gets


def test_a_full_quota_is_named(site: HdfsSite) -> None:
    site.administrator.call("PUT", "", "SETQUOTA", namespacequota="2", storagespacequota="9223372036854775807")
    storage = site.web()
    storage.make_directory("one")
    with pytest.raises(StorageError, match="NSQuotaExceededException") as caught:
        storage.write_new("two", b"2")
    assert "name quota" in caught.value.remedy
    assert site.administrator.names() == {"one/"}


def test_missing_rights_are_named_with_the_user(site: HdfsSite) -> None:
    with pytest.raises(StorageError, match="Permission denied: user=joe") as caught:
        site.web(user="joe").write_new("f", b"1")
    assert caught.value.subject == f"{site.location}/f"
    assert "proxy_user" in caught.value.remedy


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://localhost:{rpc}", "does not speak WebHDFS"),
        ("http://localhost:{free}", "refuses connections"),
        ("http://no-such-host.invalid:9870", "host name is unknown"),
        ("https://localhost:{web}", "TLS fails"),
    ],
)
def test_a_wrong_address_is_named_with_what_is_wrong_with_it(
    site: HdfsSite, address: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    web = site.server.web_address.rpartition(":")[2]
    wrong = address.format(rpc=site.server.port, free=free_port(), web=web)
    storage = site.web(web_addresses=(wrong,), authorities=(f"localhost:{site.server.port}",))
    with pytest.raises(StorageError, match=reason) as caught:
        storage.exists("f")
    assert caught.value.subject == f"{site.location}/f"
    assert wrong in caught.value.reason


def test_a_server_that_says_nothing_is_given_up(site: HdfsSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    # Whoever would wait for ever is released when the server goes.
    with ThreadPoolExecutor(1) as threads, socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        storage = site.web(
            web_addresses=(address,), authorities=(f"localhost:{site.server.port}",), timeout_seconds=0.2
        )
        with pytest.raises(StorageError, match="does not answer in time"):
            threads.submit(storage.exists, "f").result(PATIENCE_SECONDS)
