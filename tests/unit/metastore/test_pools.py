from __future__ import annotations

import pytest

from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.metastore.pools import RequestPool, owner_of

OWNER = owner_of("dag", "task", "run", "3")


def test_an_owner_is_the_same_for_every_attempt_and_no_other_task() -> None:
    assert owner_of("dag", "task", "run", "3") == OWNER
    others = {owner_of("dag", "task", "run", "4"), owner_of("dag", "taskr", "un", "3"), owner_of("dagtask", "run", "3")}
    assert OWNER not in others
    assert len(others) == 3


def test_a_pool_is_found_again_by_its_name() -> None:
    pool = RequestPool(OWNER, "0123abcd")
    assert str(pool) == f"airflow-acid:{OWNER}:0123abcd"
    assert RequestPool.parse(str(pool)) == pool
    assert RequestPool.new(OWNER) != RequestPool.new(OWNER)


@pytest.mark.parametrize("name", [None, "", "default", "airflow-acid:x:y", f"airflow-acid:{OWNER}", f"x{OWNER}:t"])
def test_other_pools_are_not_ours(name: str | None) -> None:
    assert RequestPool.parse(name) is None


@pytest.mark.parametrize(("owner", "token"), [("short", "t"), (OWNER, ""), (OWNER, "a:b"), (OWNER.upper() + "g", "t")])
def test_a_name_that_could_not_be_parsed_again_is_refused(owner: str, token: str) -> None:
    with pytest.raises(ConfigurationError):
        RequestPool(owner, token)


def test_the_name_fits_the_metastores_column() -> None:
    assert len(str(RequestPool.new(OWNER))) <= 128


def test_a_workers_id_is_parted_by_hive_into_a_host_and_a_worker() -> None:
    pool = RequestPool(OWNER, "0123abcd")
    id = pool.worker_id("node-7.site")
    assert id.rpartition("-")[::2] == ("airflow@node-7.site", f"acid:{OWNER}:0123abcd")
    assert RequestPool.of_worker(id) == pool
    assert len(RequestPool.new(OWNER).worker_id("h" * 255)) <= 128, "what CQ_WORKER_ID holds"


@pytest.mark.parametrize("name", [f"airflow-acid:{OWNER}:t1@host", f"airflow@a-b-acid:{OWNER}:t1"])
def test_an_attempt_is_known_by_its_worker_and_by_the_host_of_its_transaction(name: str) -> None:
    assert RequestPool.of_worker(name) == RequestPool(OWNER, "t1")


@pytest.mark.parametrize(
    "name", [None, "", "host-17", f"acid:{OWNER}:t1", f"airflow@h-acid:{OWNER}", f"x-acid:{OWNER}:t"]
)
def test_others_are_not_taken_for_attempts(name: str | None) -> None:
    assert RequestPool.of_worker(name) is None
