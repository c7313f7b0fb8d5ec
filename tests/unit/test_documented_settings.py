"""What the documents say to enter is taken: connections, parameters, names of settings, storages, lines to copy."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from configparser import ConfigParser
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import pyspark
import pytest
from airflow.providers.common.compat.sdk import BaseHook
from airflow.providers_manager import ProvidersManager
from sqlalchemy import create_engine

from airflow_provider_acid.exceptions import ConfigurationError, StorageError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.hooks.other_connections import database_url
from airflow_provider_acid.operators.compaction import AcidCompactionOperator
from airflow_provider_acid.plugins.access import COMPACT_DAG_ID, UNDO_DAG_ID
from airflow_provider_acid.storages.hdfs.location import HDFS_SCHEMES
from airflow_provider_acid.storages.s3.location import SCHEMES as S3_SCHEMES
from tests.unit.test_documentation import ROOT, blocks_of, documents, section_of
from tests.unit.test_packaging import requirement_name, setup_cfg

SCHEMES = ("postgresql+psycopg2", "mysql+pymysql")
STATIC = ROOT / "airflow_provider_acid" / "plugins" / "static"


def text_of(name: str) -> str:
    return (ROOT / name).read_text()


def json_of(name: str, title: str) -> list[dict[str, Any]]:
    """The JSON blocks of a section."""
    blocks = blocks_of(name, section_of(name, title))
    return [json.loads(block.code) for block in blocks if block.language == "json"]


def set_connection(monkeypatch: pytest.MonkeyPatch, name: str, fields: Mapping[str, Any]) -> None:
    monkeypatch.setenv(f"AIRFLOW_CONN_{name}", json.dumps(fields))


# deploy.md: YARN


def yarn_examples() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Connection and operator's parameters, by deploy mode."""
    blocks = json_of("docs/deploy.md", "YARN")
    pairs = zip(blocks[::2], blocks[1::2], strict=True)
    return {connection["extra"]["deploy-mode"]: (connection, parameters) for connection, parameters in pairs}


def yarn_command(monkeypatch: pytest.MonkeyPatch, mode: str) -> tuple[list[str], dict[str, str]]:
    """What ``spark-submit`` is given in an example, and the settings in it."""
    connection, parameters = yarn_examples()[mode]
    set_connection(monkeypatch, "SPARK_DEFAULT", connection)
    operator = AcidCompactionOperator(task_id="compact", partitions=[], **parameters)
    command = [str(word) for word in operator.submission()._get_hook()._build_spark_submit_command("compact.py")]
    settings = [word for option, word in zip(command, command[1:], strict=False) if option == "--conf"]
    return command, dict(setting.split("=", 1) for setting in settings)


def test_yarn_has_an_example_of_each_deploy_mode() -> None:
    assert yarn_examples().keys() == {"client", "cluster"}


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_the_examples_of_yarn_upload_no_jars_and_start_a_python_that_is_there(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, settings = yarn_command(monkeypatch, mode)
    assert ["--master", "yarn", "--deploy-mode", mode] == [
        *command[1:3],
        *command[command.index("--deploy-mode") :][:2],
    ]
    assert settings["spark.yarn.jars"].startswith(("local:", "hdfs:"))
    # The driver of client mode runs beside Airflow's task, where no archive is unpacked; that of cluster mode does not.
    of_driver = settings.get("spark.pyspark.driver.python", settings["spark.pyspark.python"])
    folder = "/" if mode == "client" else "./" + command[command.index("--archives") + 1].partition("#")[2] + "/"
    assert of_driver.startswith(folder)


def test_the_example_of_cluster_mode_tells_airflow_where_to_end_the_application(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection, parameters = yarn_examples()["cluster"]
    set_connection(monkeypatch, "SPARK_DEFAULT", connection)
    hook = AcidCompactionOperator(task_id="compact", partitions=[], **parameters).submission()._get_hook()
    hook._validate_yarn_track_via_rm_api_config()
    assert hook._should_track_yarn_application_via_rm_api()
    assert hook._get_yarn_rm_base_url() == connection["extra"]["yarn_resourcemanager_webapp_address"]


def test_every_setting_of_spark_that_the_documents_name_is_one_of_sparks() -> None:
    known: set[str] = set()
    ends: set[str] = set()  # which Scala puts behind a setting's name: s"$PREFIX.serviceAccountName"
    for jar in (Path(pyspark.__file__).parent / "jars").glob("spark-*.jar"):
        with zipfile.ZipFile(jar) as classes:
            names = [name for name in classes.namelist() if re.search(r"[cC]onf.*\.class|/package\$?\.class", name)]
            for name in names:
                content = classes.read(name)
                known.update(word.decode() for word in re.findall(rb"spark(?:\.[A-Za-z][A-Za-z0-9]*)+", content))
                ends.update(word.decode() for word in re.findall(rb"\x01(\.[A-Za-z][A-Za-z0-9]*)", content))
    named = {
        word
        for path in documents()
        for word in re.findall(r"(?<![\w./-])spark(?:\.[A-Za-z][A-Za-z0-9]*)+", path.read_text())
        if not word.startswith(("spark.executorEnv.", "spark.yarn.appMasterEnv."))
    }
    assert {"spark.pyspark.driver.python", "spark.yarn.jars"} <= named
    known |= {word for word in named if (parts := word.rpartition("."))[0] in known and f".{parts[2]}" in ends}
    assert named - known == set()


# hive-3.md: the metastore's database


@pytest.mark.parametrize(("place", "extra"), [(0, "postgres"), (1, "mysql")])
def test_the_connections_to_a_metastores_database_need_no_more_than_our_extra(
    place: int, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = json_of("docs/hive-3.md", "Set up")[place]
    # The form of Airflow offers the types of the installed providers.
    manager = ProvidersManager()  # type: ignore[no-untyped-call]  # Airflow's has no type hints
    assert connection["conn_type"] in {kind.connection_type for kind in manager.iter_connection_type_hook_ui_metadata()}
    set_connection(monkeypatch, "METASTORE_DB", connection)
    url = database_url(BaseHook.get_connection("metastore_db"))
    assert (url.host, url.port, url.database) == (connection["host"], connection["port"], connection["schema"])
    engine = create_engine(url)
    distributions = {requirement_name(one) for one in metadata.packages_distributions()[engine.dialect.driver]}
    wanted = setup_cfg()["options.extras_require"][extra].split()
    assert distributions & {requirement_name(line) for line in wanted}


def test_a_connection_of_a_type_that_tells_no_kind_of_database_is_refused_with_what_to_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_connection(monkeypatch, "METASTORE_DB", {"conn_type": "generic", "host": "db", "schema": "metastore"})
    with pytest.raises(ConfigurationError) as refusal:
        database_url(BaseHook.get_connection("metastore_db"))
    documented = [connection["extra"]["sqlalchemy_scheme"] for connection in json_of("docs/hive-3.md", "Set up")]
    assert re.findall(r'"([a-z0-9]+\+[a-z0-9]+)"', refusal.value.remedy) == documented == list(SCHEMES)


# Airflow's test of connections


def test_documents_that_rely_on_the_test_of_a_connection_say_how_to_switch_it_on() -> None:
    page = section_of("docs/first-steps.md", "Test the connection")
    [command] = [block.code for block in blocks_of("docs/first-steps.md", page) if block.language == "text"]
    assert shlex.split(command) == [
        "AIRFLOW__CORE__TEST_CONNECTION=Enabled",
        *("airflow", "connections", "test", "hive_acid_default"),
    ]
    assert "[core] test_connection = Enabled" in page
    button = re.compile(r"\*Test\*")
    assert [path.name for path in documents() if button.search(path.read_text())] == ["first-steps.md"]


# The storages


def schemes_of(name: str, title: str, state: str) -> set[str]:
    """The schemes of locations in a section's table of storages, of those rows that match."""
    rows = [row for row in section_of(name, title).splitlines() if re.match(r"\| [^|]*`(/path|\w+:/)", row)]
    return {scheme for row in rows if re.search(state, row) for scheme in re.findall(r"(\w+)://", row.split("|")[1])}


@pytest.mark.parametrize(
    ("name", "title", "supported"),
    [
        ("README.md", "Where the tables may lie", "."),
        ("docs/storage.md", "Where the tables may lie", r"\| supported"),
    ],
)
def test_the_storages_that_are_said_to_be_supported_are_those_that_can_be_opened(
    name: str, title: str, supported: str
) -> None:
    assert schemes_of(name, title, supported) == set(HDFS_SCHEMES) | set(S3_SCHEMES)


def test_no_storage_that_is_said_to_be_refused_can_be_opened() -> None:
    refused = re.findall(r"`(\w+)://", section_of("README.md", "What is not supported yet"))
    assert refused
    assert schemes_of("docs/storage.md", "Where the tables may lie", r"\| refused \|$") == set(refused)
    for scheme in refused:
        with pytest.raises(StorageError, match="is not supported by this release"):
            Storages().open(f"{scheme}://place/path")


def test_the_promise_names_what_it_rests_on() -> None:
    promise = section_of("README.md", "What is promised")
    assert "docs/storage.md" in promise
    assert re.search(r"\*\*The risk that stays", section_of("docs/storage.md", "S3"))
    assert "the risk that stays" in promise


# The page


@pytest.mark.parametrize("dag_id", [COMPACT_DAG_ID, UNDO_DAG_ID])
def test_the_dialog_of_a_missing_dag_shows_a_line_that_installs_it(dag_id: str) -> None:
    line = r"from (airflow_provider_acid\.\w+) import \$\{dagId\}"
    [module] = re.findall(line, (STATIC / "start.js").read_text())
    assert hasattr(import_module(module), dag_id)
    lines = re.findall(rf"from {re.escape(module)} import (.*)", text_of("docs/dags.md"))
    assert any(dag_id in line.split(", ") for line in lines)


def test_the_page_refers_to_no_place_that_its_user_cannot_find() -> None:
    for path in STATIC.glob("*.js"):
        assert re.findall(r"in its README|see “", path.read_text()) == [], path.name


# install-airflow.md: connections from a secrets backend


def test_the_connections_may_lie_in_a_secrets_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In Airflow's own backend of files, which reaches them as every other does."""
    section = section_of("docs/install-airflow.md", "Connections from a secrets backend")
    settings, connections = (block.code for block in blocks_of("docs/install-airflow.md", section))
    parser = ConfigParser()
    parser.read_string(settings)
    file = tmp_path / "connections.json"
    file.write_text(connections)
    kwargs = json.loads(parser["secrets"]["backend_kwargs"])
    assert kwargs.keys() == {"connections_file_path"}
    for name in ("HIVE_ACID_DEFAULT", "METASTORE_DB"):
        monkeypatch.delenv(f"AIRFLOW_CONN_{name}", raising=False)
    program = (
        "from airflow_provider_acid.hooks.metastore import AcidMetastoreHook\n"
        "endpoint = AcidMetastoreHook().endpoint()\n"
        "print('opened', *endpoint.addresses, endpoint.database_url.host, endpoint.database_url.password)"
    )
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(tmp_path),
        "AIRFLOW__SECRETS__BACKEND": parser["secrets"]["backend"],
        "AIRFLOW__SECRETS__BACKEND_KWARGS": json.dumps({"connections_file_path": str(file)}),
    }
    command = [sys.executable, "-c", program]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert "opened metastore.example.com:9083 db.example.com from-the-vault" in answer.stdout.splitlines(), answer
