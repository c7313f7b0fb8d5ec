"""The connection form of Airflow 2, made of what the provider info says to Airflow 3: one description for both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

CONNECTION_TYPE = "hive_acid"


class FieldSchema(TypedDict, total=False):
    """JSON schema of a field's value, as Airflow 3.2 reads it."""

    type: list[str]
    default: float | bool


class Field(TypedDict):
    """A field of the form that goes into the connection's extra."""

    label: str
    description: str
    schema: FieldSchema


FIELDS: Mapping[str, Field] = {
    "timeout_seconds": {
        "label": "Time-out (seconds)",
        "description": "Longest time for a call to the metastore, from its sending to the end of its answer",
        "schema": {"type": ["number", "null"], "default": 60},
    },
    "user": {
        "label": "User",
        "description": "Name that transactions and locks are opened under; default: the process's user",
        "schema": {"type": ["string", "null"]},
    },
    "metastore_db_conn_id": {
        "label": "Database connection",
        "description": "Id of an Airflow connection to the metastore's own database; needed with Hive 3.1",
        "schema": {"type": ["string", "null"]},
    },
    "housekeeping_elsewhere": {
        "label": "Housekeeping elsewhere",
        "description": "Another instance of this Hive 3.1 metastore has hive.compactor.initiator.on",
        "schema": {"type": ["boolean", "null"], "default": False},
    },
    "storage": {
        "label": "Storage",
        "description": 'How HDFS and S3 are reached: {"hdfs": {"web_addresses": ["namenode:9870"]}, "s3": {}}',
        "schema": {"type": ["string", "null"]},
    },
    "tls": {
        "label": "TLS",
        "description": "The metastore speaks TLS (metastore.use.SSL); its host name is always checked",
        "schema": {"type": ["boolean", "null"], "default": False},
    },
    "tls_ca_file": {
        "label": "TLS: CA file",
        "description": "PEM file with the authorities to trust; default: those of the operating system",
        "schema": {"type": ["string", "null"]},
    },
    "tls_certificate_file": {
        "label": "TLS: client certificate",
        "description": "PEM file with Airflow's own certificate, where the server asks for one",
        "schema": {"type": ["string", "null"]},
    },
    "tls_key_file": {
        "label": "TLS: client key",
        "description": "PEM file with the key of that certificate, without a password",
        "schema": {"type": ["string", "null"]},
    },
    "http": {
        "label": "HTTP",
        "description": "The metastore speaks HTTP (metastore.server.thrift.transport.mode=http); with TLS: HTTPS",
        "schema": {"type": ["boolean", "null"], "default": False},
    },
    "http_path": {
        "label": "HTTP: path",
        "description": "As the server's own metastore.client.thrift.http.path; default: metastore",
        "schema": {"type": ["string", "null"]},
    },
    "jwt_file": {
        "label": "HTTP: file with a JWT",
        "description": "Read for each call, for tokens that are renewed; a token that stays goes into the password",
        "schema": {"type": ["string", "null"]},
    },
    "kerberos_principal": {
        "label": "Kerberos: metastore's principal",
        "description": "As hive.metastore.kerberos.principal, e.g. hive/_HOST@EXAMPLE.ORG; empty: no Kerberos",
        "schema": {"type": ["string", "null"]},
    },
    "kerberos_keytab": {
        "label": "Kerberos: keytab",
        "description": "File with Airflow's key; default: the ticket that its process has",
        "schema": {"type": ["string", "null"]},
    },
    "kerberos_client_principal": {
        "label": "Kerberos: Airflow's principal",
        "description": "Whose key is in the keytab, e.g. airflow@EXAMPLE.ORG",
        "schema": {"type": ["string", "null"]},
    },
}
"""Fields of the form, in its order."""

HIDDEN_FIELDS = ("schema", "extra")
RELABELING = {
    **{"host": "Metastore hosts", "port": "Thrift port"},
    **{"login": "User (LDAP)", "password": "Password (LDAP), or JWT (HTTP)"},
}
PLACEHOLDERS = {"host": "metastore-1.example.org,metastore-2.example.org:9084", "port": "9083"}


def airflow_2_widgets() -> dict[str, Any]:
    """The fields as Airflow 2's web server draws them; its libraries are imported here, and are there only.

    Numbers are text fields: Airflow 2 has none for fractions, and the hook reads texts.
    """
    from flask_appbuilder.fieldwidgets import BS3TextFieldWidget
    from wtforms import BooleanField, StringField

    def widget(field: Field) -> Any:
        schema = field["schema"]
        default = schema.get("default")
        if "boolean" in schema["type"]:
            return BooleanField(field["label"], description=field["description"], default=bool(default))
        text = None if default is None else str(default)
        return StringField(field["label"], description=field["description"], default=text, widget=BS3TextFieldWidget())

    return {name: widget(field) for name, field in FIELDS.items()}
