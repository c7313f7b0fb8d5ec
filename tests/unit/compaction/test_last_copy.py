"""A dead attempt's result stays where what it was made of is gone: a whole recovery, and the next one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from airflow_provider_acid.exceptions import LastCopyError
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.plan.partition import MinorPublication
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.acid_history.compactor import Compactor, fingerprint
from tests.harness.acid_history.metastore import State
from tests.harness.acid_history.partition import Partition
from tests.harness.acid_history.steps import Death, Statement, TableKind, What, Write
from tests.harness.acid_history.writer import write_and_commit

INSERT = Write((Statement(What.INSERT, (0, 1)),))
DELETE = Write((Statement(What.DELETE, (0,)),))


@pytest.mark.parametrize("type", CompactionType)
@pytest.mark.parametrize("is_aborted", [False, True])
def test_recovery_leaves_the_last_copy_until_its_sources_are_back(
    tmp_path: Path, type: CompactionType, is_aborted: bool
) -> None:
    partition = Partition(TableKind(4, mixed=MinorPublication.LOCK_FREE), tmp_path / "warehouse")
    compactor = Compactor(partition, lambda _: None, lambda: False)
    for step in (INSERT, INSERT, DELETE):
        write_and_commit(partition, step)
    sources = directories(partition)
    assert compactor.recover() is None
    compactor.start(type)
    compactor.finish(Death.AFTER_PUBLISHING)
    assert directories(partition) > sources
    (dead,) = partition.metastore.silent
    if is_aborted:
        partition.metastore.end(dead, State.ABORTED)
    for name in sources:
        shutil.move(partition.folder / name, tmp_path / name)
    before, state = visible(partition), partition.metastore.state(dead)
    for _ in range(2):
        with pytest.raises(LastCopyError, match=f"suffix _v{dead:07d}"):
            compactor.recover()
        assert visible(partition) == before
        assert partition.metastore.state(dead) is state
        assert [row.state.is_terminal for row in partition.metastore.rows.values()] == [False]
    for name in sources:
        shutil.move(tmp_path / name, partition.folder / name)
    assert compactor.recover() is None
    assert directories(partition) == sources
    assert [row.state for row in partition.metastore.rows.values()] == [CompactionState.FAILED]


def visible(partition: Partition) -> dict[str, str]:
    return {path: content for path, content in fingerprint(partition.folder).items() if not path.startswith("_")}


def directories(partition: Partition) -> set[str]:
    return {path for path in visible(partition) if "/" not in path}
