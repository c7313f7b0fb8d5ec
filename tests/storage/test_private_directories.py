"""The directories of runs on HDFS, the user's own by the NameNode's word, and on S3."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from airflow_provider_acid.acid.sealing import RunKey
from airflow_provider_acid.compaction.run.run_directory import RunDirectory
from airflow_provider_acid.compaction.run.run_place import RunPlace
from airflow_provider_acid.exceptions import ConfigurationError, RefusedError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.merge.app import driver_run as job
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from airflow_provider_acid.storages.s3.options import S3Credentials, S3Options
from tests.harness.hdfs_server import HdfsServer
from tests.storage.hdfs_stores import Administrator


class User:
    """Somebody on HDFS, as a rule with a home directory."""

    def __init__(self, server: HdfsServer, *, has_home: bool = True) -> None:
        self.server = server
        self.name = f"u{uuid.uuid4().hex[:12]}"
        self.home = Administrator(server, f"/user/{self.name}")
        if has_home:
            self.home.call("PUT", "", "MKDIRS")
            self.home.call("PUT", "", "SETOWNER", owner=self.name)
        self.storages = Storages((HdfsOptions((server.web_address,), user=self.name, timeout_seconds=60),))

    def run(self, storages: Storages | None = None) -> RunDirectory:
        storages = storages or self.storages
        place = RunPlace.of(storages, None, f"{self.server.uri}/warehouse/d.db/t")
        return RunDirectory(storages, place, RunKey.new("run1"))

    def seen(self, path: str) -> tuple[str, str]:
        status = self.home.call("GET", path, "GETFILESTATUS").json()["FileStatus"]
        return status["owner"], status["permission"]


@pytest.fixture
def user(hdfs: HdfsServer) -> User:
    return User(hdfs)


def driver_on(run: RunDirectory, storages: Storages) -> job.DriverRun:
    return job.DriverRun(storages.open(run.location), run.key.secret)


def test_on_hdfs_runs_lie_in_the_users_home_directory_for_nobody_else(user: User) -> None:
    run = user.run()
    assert run.location == f"{user.server.uri}/user/{user.name}/.airflow_acid/runs/run1"
    for path in (".airflow_acid", ".airflow_acid/runs", ".airflow_acid/runs/run1"):
        assert user.seen(path) == (user.name, "700")
    assert driver_on(run, user.storages).batch().idle_timeout_seconds > 0
    run.remove()


def test_who_acts_for_another_uses_the_others_home_directory(user: User) -> None:
    options = HdfsOptions((user.server.web_address,), user=user.server.superuser, proxy_user=user.name)
    run = user.run(Storages((options,)))
    assert user.seen(".airflow_acid/runs/run1") == (user.name, "700")
    assert driver_on(run, user.storages).batch().idle_timeout_seconds > 0


def test_on_hdfs_a_home_directory_that_is_made_on_the_way_is_like_any_other(hdfs: HdfsServer) -> None:
    """The superuser may make it; closed, ``/user`` would keep everybody else from their homes."""
    home = f"/homes_{uuid.uuid4().hex}/root"
    storage = Storages((HdfsOptions((hdfs.web_address,), user=hdfs.superuser, timeout_seconds=60),)).open(
        hdfs.uri + home
    )
    storage.make_private(".airflow_acid")
    modes = [Administrator(hdfs, path).call("GET", "", "GETFILESTATUS") for path in (home.rpartition("/")[0], home)]
    assert [answer.json()["FileStatus"]["permission"] for answer in modes] == ["755", "755"]
    private = Administrator(hdfs, home).call("GET", ".airflow_acid", "GETFILESTATUS")
    assert private.json()["FileStatus"]["permission"] == "700"


def others_may_write(user: User) -> None:
    user.home.call("PUT", ".airflow_acid", "SETPERMISSION", permission="777")


def is_somebody_elses(user: User) -> None:
    user.home.call("PUT", ".airflow_acid", "SETPERMISSION", permission="755")
    user.home.call("PUT", ".airflow_acid", "SETOWNER", owner="mallory")


@pytest.mark.parametrize(
    ("change", "reason"),
    [(others_may_write, "may be written to by others (its mode is 777)"), (is_somebody_elses, "belongs to mallory")],
)
def test_a_place_on_hdfs_that_is_not_private_is_refused(
    user: User, change: Callable[[User], None], reason: str
) -> None:
    user.run().remove()
    change(user)
    with pytest.raises(RefusedError) as raised:
        user.run()
    assert raised.value.subject == f"{user.server.uri}/user/{user.name}/.airflow_acid"
    assert reason in raised.value.reason


def test_the_driver_as_another_user_is_refused_by_the_place(user: User) -> None:
    run = user.run()
    user.home.call("PUT", ".airflow_acid", "SETPERMISSION", permission="755")
    user.home.call("PUT", ".airflow_acid/runs", "SETPERMISSION", permission="755")
    user.home.call("PUT", ".airflow_acid/runs/run1", "SETPERMISSION", permission="755")
    other = User(user.server)
    with pytest.raises(RefusedError, match=f"belongs to {user.name}, and not to {other.name}"):
        driver_on(run, other.storages).batch()


def test_without_a_home_directory_the_remedy_is_another_place(hdfs: HdfsServer) -> None:
    Administrator(hdfs, "/user").call("PUT", "", "MKDIRS")
    with pytest.raises(ConfigurationError, match="Permission denied") as raised:
        User(hdfs, has_home=False).run()
    assert "run_directory" in raised.value.remedy


@pytest.mark.parametrize("location", ["s3a://bucket/d.db/t", "s3a://bucket"])
def test_on_s3_runs_lie_beside_the_tables_in_their_bucket(location: str) -> None:
    """Who may write where is the bucket's policy; objects have no modes."""
    storages = Storages((S3Options(region="us-east-1", credentials=S3Credentials("key", "secret")),))
    storage = storages.open(location)
    storage.make_private("x")
    storage.check_private("x")
    assert RunPlace.of(storages, None, location).location == "s3a://bucket/.airflow_acid/runs"
