"""What is particular to HDFS read by libhdfs, and why nothing is changed by it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any

import pytest
from pyarrow import fs

from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.exceptions import ConfigurationError, NameTakenError, StorageError
from airflow_provider_acid.storages.hdfs import libhdfs as connections
from airflow_provider_acid.storages.hdfs.arrow_hdfs import ArrowHdfsStorage
from airflow_provider_acid.storages.hdfs.location import HdfsLocation
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from tests.harness.hdfs_server import HdfsServer
from tests.harness.ports import free_port
from tests.storage.hdfs_site import ODD_NAMES, HdfsSite
from tests.storage.hdfs_stores import USER

PATIENCE_SECONDS = 30


@pytest.fixture
def site(hdfs: HdfsServer, libhdfs: None) -> HdfsSite:
    return HdfsSite(hdfs)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_are_taken_as_they_are(hdfs: HdfsServer, libhdfs: None, name: str) -> None:
    site = HdfsSite(hdfs, name)
    site.administrator.make_directory(name)
    site.administrator.write(f"{name}/{name}", b"rows")
    storage = site.arrow()
    assert storage.list() == Listing((FileEntry(f"{name}/{name}", 4),), (name,))
    assert storage.list(name) == Listing((FileEntry(name, 4),))
    assert storage.read(f"{name}/{name}") == b"rows"
    assert storage.exists(f"{name}/{name}")


@pytest.mark.parametrize("form", ["hdfs://{authority}{path}/", "hdfs://{path}", "hdfs:{path}"])
def test_every_spelling_of_a_location_means_the_same_directory(site: HdfsSite, form: str) -> None:
    site.administrator.write("f", b"1")
    location = form.format(authority=site.server.uri.removeprefix("hdfs://"), path=site.root)
    storage = ArrowHdfsStorage(location, site.options)
    assert storage.location == location
    assert storage.list() == Listing((FileEntry("f", 1),))


def test_a_name_that_libhdfs_garbles_does_not_hide_its_neighbours(site: HdfsSite) -> None:
    site.administrator.write("p=🐘", b"1")
    site.administrator.write("f", b"22")
    storage = site.arrow()
    assert [storage.exists(name) for name in ("f", "missing", "p=🐘")] == [True, False, True]
    assert storage.list() == Listing((FileEntry("f", 2), FileEntry("p=🐘", 1)))


@pytest.mark.parametrize("path", ["", "missing", "p=🐘"])
def test_names_that_libhdfs_garbles_need_a_web_address(site: HdfsSite, path: str) -> None:
    site.administrator.write("p=🐘", b"1")
    storage = site.arrow(web_addresses=())
    with pytest.raises(ConfigurationError, match=r"beyond U\+FFFF") as caught:
        storage.exists(path) if path else storage.list()
    assert "web_addresses" in caught.value.remedy


# Without a web address


def test_without_a_web_address_everything_can_be_read(site: HdfsSite) -> None:
    site.administrator.make_directory("base_1")
    site.administrator.write("base_1/bucket_00000", b"rows")
    storage = site.arrow(web_addresses=())
    assert storage.list() == Listing((FileEntry("base_1/bucket_00000", 4),), ("base_1",))
    assert storage.exists("")
    assert storage.exists("base_1")
    assert not storage.exists("base_2")
    assert not storage.exists("base_2/bucket_00000")
    with storage.open_input("base_1/bucket_00000") as file:
        file.seek(-2, os.SEEK_END)
        assert file.read() == b"ws"


def test_without_a_web_address_nothing_can_be_changed(site: HdfsSite) -> None:
    site.administrator.make_directory("base_1")
    storage = site.arrow(web_addresses=())
    for change in (
        lambda: storage.create("f").__enter__(),
        lambda: storage.write_new("f", b"1"),
        lambda: storage.make_directory("d"),
        lambda: storage.publish("base_1", "base_2"),
        lambda: storage.delete(["base_1"]),
    ):
        with pytest.raises(ConfigurationError, match="can only be read") as caught:
            change()
        assert "web_addresses" in caught.value.remedy
    assert site.administrator.names() == {"base_1/"}


def test_with_one_a_directory_is_published_beside_no_other_of_its_name(site: HdfsSite) -> None:
    storage = site.arrow()
    assert storage.rules.renames
    for name in ("_new", "base_1"):
        storage.make_directory(name)
    with pytest.raises(NameTakenError):
        storage.publish("_new", "base_1")
    assert site.administrator.names() == {"_new/", "base_1/"}


# Whose rights count, how long is waited


def test_work_on_behalf_of_the_tables_owner_is_done_with_his_rights(site: HdfsSite) -> None:
    site.administrator.write("f", b"rows")
    site.administrator.call("PUT", "", "SETPERMISSION", permission="700")
    assert site.arrow(user="joe", proxy_user=USER, web_addresses=()).read("f") == b"rows"
    with pytest.raises(StorageError, match="Permission denied"):
        site.arrow(user=USER, proxy_user="joe", web_addresses=()).read("f")


def test_the_time_limit_is_that_of_every_answer(site: HdfsSite, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, str]] = []

    def note(*names: object, extra_conf: dict[str, str], **rest: object) -> object:
        made.append(extra_conf)
        return object()

    monkeypatch.setattr(fs, "HadoopFileSystem", note)
    connections._connect(HdfsLocation.of(site.location), replace(site.options, timeout_seconds=7.5))
    assert made[0]["ipc.client.rpc-timeout.ms"] == "7500"
    assert made[0]["dfs.client.socket-timeout"] == "7500"
    # Where the NameNode is off the network.
    assert made[0]["ipc.client.connect.timeout"] == "10000"
    for retries in ("max.retries", "max.retries.on.timeouts"):
        assert int(made[0][f"ipc.client.connect.{retries}"]) < 5


# Errors


def test_missing_rights_do_not_make_a_file_missing(site: HdfsSite) -> None:
    site.administrator.make_directory("closed")
    site.administrator.write("closed/f", b"1")
    site.administrator.call("PUT", "closed", "SETPERMISSION", permission="700")
    storage = site.arrow(user="joe", web_addresses=())
    for look in (storage.exists, storage.read, storage.list):
        with pytest.raises(StorageError, match="Permission denied") as caught:
            look("closed/f")
        assert caught.value.subject == f"{site.location}/closed/f"


def test_a_namenode_that_is_down_does_not_make_a_file_missing(site: HdfsSite) -> None:
    location = site.location.replace(str(site.server.port), str(free_port()))
    storage = ArrowHdfsStorage(location, HdfsOptions(user=USER, timeout_seconds=5))
    for look in (storage.exists, storage.read, storage.list):
        with pytest.raises(StorageError, match="cannot be") as caught:
            look("f")
        assert "NameNode" in caught.value.remedy


@pytest.mark.parametrize("path", ["missing", "directory", "file/below"])
def test_what_is_no_file_is_named(site: HdfsSite, path: str) -> None:
    site.administrator.make_directory("directory")
    site.administrator.write("file", b"1")
    with pytest.raises(StorageError, match=f"{path}: cannot be read"):
        site.arrow().read(path)


@pytest.mark.parametrize("path", ["missing", "file"])
def test_what_is_no_directory_cannot_be_listed(site: HdfsSite, path: str) -> None:
    site.administrator.write("file", b"1")
    with pytest.raises(StorageError, match=f"{path}: cannot be listed"):
        site.arrow().list(path)


def test_an_unknown_host_is_named(libhdfs: None) -> None:
    with pytest.raises(StorageError, match="libhdfs does not connect"):
        ArrowHdfsStorage("hdfs://no-such-host.invalid:8020/t", HdfsOptions())


def test_another_scheme_is_left_to_webhdfs(site: HdfsSite) -> None:
    with pytest.raises(StorageError, match="is not read by libhdfs"):
        ArrowHdfsStorage(site.location.replace("hdfs://", "webhdfs://"), site.options)


def test_with_kerberos_nobody_is_acted_for(libhdfs: None) -> None:
    with pytest.raises(ConfigurationError, match="not possible by libhdfs with Kerberos"):
        ArrowHdfsStorage("hdfs://ns1/t", HdfsOptions(kerberos=True, proxy_user="hive"))


def test_where_libhdfs_is_not_installed_the_error_says_what_to_set() -> None:
    program = (
        "from airflow_provider_acid.storages.hdfs.arrow_hdfs import ArrowHdfsStorage\n"
        "from airflow_provider_acid.storages.hdfs.options import HdfsOptions\n"
        "from airflow_provider_acid.exceptions import ConfigurationError\n"
        "try:\n    ArrowHdfsStorage('hdfs://ns1/t', HdfsOptions())\n"
        "except ConfigurationError as error:\n    print(error)\n"
    )
    bare = {name: value for name, value in os.environ.items() if name not in ("ARROW_LIBHDFS_DIR", "HADOOP_HOME")}
    environment = {**bare, "JAVA_HOME": "/nowhere"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert "libhdfs: cannot be used (Unable to load lib" in done.stdout
    assert "CLASSPATH" in done.stdout


def test_a_directory_that_vanishes_while_its_parent_is_listed_is_not_listed(
    site: HdfsSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("stays", "vanishes"):
        site.administrator.make_directory(name)
    storage = site.arrow()
    listing = iter([FileNotFoundError("vanishes")])

    class Losing:
        def get_file_info(self, selector: fs.FileSelector) -> object:
            for error in listing:
                site.administrator.call("DELETE", "vanishes", "DELETE", recursive="true")
                raise error
            return hdfs.get_file_info(selector)

    hdfs = storage._hdfs
    monkeypatch.setattr(storage, "_hdfs", Losing())
    assert storage.list() == Listing((), ("stays",))


def test_a_file_that_ends_early_is_an_error(site: HdfsSite, monkeypatch: pytest.MonkeyPatch) -> None:
    class Short:
        def open_input_file(self, path: str) -> Short:
            return self

        def size(self) -> int:
            return 7

        def read_at(self, length: int, offset: int) -> bytes:
            assert offset < 4, "who takes this file for longer asks for ever"
            return b"rows"[offset:][:length]

        def close(self) -> None:
            pass

    storage = site.arrow()
    monkeypatch.setattr(storage, "_hdfs", Short())
    with pytest.raises(StorageError, match="f: ends 3 bytes early"):
        storage.read("f")


def test_a_process_connects_once_to_each_hdfs(site: HdfsSite, monkeypatch: pytest.MonkeyPatch) -> None:
    connect, made = connections._connect, []

    def counting(*arguments: Any) -> fs.HadoopFileSystem:
        made.append(arguments)
        return connect(*arguments)

    monkeypatch.setattr(connections, "_connect", counting)
    for _ in range(3):
        site.arrow(timeout_seconds=29.0).list()
    assert len(made) == 1


def test_threads_that_come_at_once_wait_for_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each other one would be a JVM's client with threads of its own, never closed."""
    place, options = HdfsLocation.of("hdfs://ns1/t"), HdfsOptions(timeout_seconds=28.0)
    meeting, made = Barrier(4), []

    def connect(*arguments: object) -> object:
        made.append(arguments)
        # Long enough for the others to come in, were they let in.
        time.sleep(0.2)
        return object()

    def come(number: int) -> object:
        meeting.wait(PATIENCE_SECONDS)
        return connections.connection(place, options)

    monkeypatch.setattr(connections, "_connect", connect)
    monkeypatch.setattr(connections, "_connections", {})
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(come, range(4)))
    assert len(made) == 1
    assert found == [found[0]] * 4


# Why nothing is changed by libhdfs: where one of these no longer holds, its docstring is to be read again


@pytest.fixture
def client(site: HdfsSite) -> fs.HadoopFileSystem:
    for name in ("a", "b"):
        site.administrator.make_directory(f"{name}_directory")
        site.administrator.write(f"{name}_file", name.encode())
    return connections.connection(ArrowHdfsStorage(site.location, site.options)._place, site.options)


def test_pyarrow_moves_a_directory_into_another(site: HdfsSite, client: fs.HadoopFileSystem) -> None:
    client.move(f"{site.root}/a_directory", f"{site.root}/b_directory")
    assert "b_directory/a_directory/" in site.administrator.names()


def test_pyarrow_replaces_a_file_by_another(site: HdfsSite, client: fs.HadoopFileSystem) -> None:
    client.move(f"{site.root}/a_file", f"{site.root}/b_file")
    assert site.administrator.call("GET", "b_file", "OPEN").content == b"a"


def test_pyarrow_makes_the_missing_parents_of_a_file(site: HdfsSite, client: fs.HadoopFileSystem) -> None:
    client.open_output_stream(f"{site.root}/gone/f").close()
    assert "gone/f" in site.administrator.names()


def test_pyarrow_takes_a_file_without_rights_for_missing(site: HdfsSite, client: fs.HadoopFileSystem) -> None:
    site.administrator.call("PUT", "", "SETPERMISSION", permission="000")
    assert client.get_file_info(f"{site.root}/a_file").type == fs.FileType.NotFound


def test_who_may_change_a_directory_or_make_it_is_asked_of_the_namenode(site: HdfsSite) -> None:
    parent = site.location.rpartition("/")[0]
    places = (site.location, f"{site.location}/none/yet", parent, f"{parent}/none/yet")
    assert [ArrowHdfsStorage(place, site.options).may_change() for place in places] == [True, True, False, False]
