"""Types of ORC columns: from Hive's type text, from and to an ORC footer, and which may be brought to which."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.plan.plan import Column


class Kind(IntEnum):
    """ORC's type kinds, by their number in the footer."""

    BOOLEAN = 0
    TINYINT = 1
    SMALLINT = 2
    INT = 3
    BIGINT = 4
    FLOAT = 5
    DOUBLE = 6
    STRING = 7
    BINARY = 8
    TIMESTAMP = 9
    LIST = 10
    MAP = 11
    STRUCT = 12
    UNION = 13
    DECIMAL = 14
    DATE = 15
    VARCHAR = 16
    CHAR = 17
    TIMESTAMP_INSTANT = 18


MAX_NESTING = 100
"""Most types inside each other; Hive and ORC's libraries follow them by recursion."""

_NO_CHILDREN = range(1)
_CHILDREN = {Kind.LIST: range(1, 2), Kind.MAP: range(2, 3), Kind.STRUCT: range(1 << 32), Kind.UNION: range(1 << 32)}

INTEGERS = (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT)
TIMESTAMPS = (Kind.TIMESTAMP, Kind.TIMESTAMP_INSTANT)

_HIVE_NAMES = {
    "boolean": Kind.BOOLEAN,
    "tinyint": Kind.TINYINT,
    "smallint": Kind.SMALLINT,
    "int": Kind.INT,
    "integer": Kind.INT,
    "bigint": Kind.BIGINT,
    "float": Kind.FLOAT,
    "double": Kind.DOUBLE,
    "string": Kind.STRING,
    "binary": Kind.BINARY,
    "timestamp": Kind.TIMESTAMP,
    "date": Kind.DATE,
    "decimal": Kind.DECIMAL,
    "varchar": Kind.VARCHAR,
    "char": Kind.CHAR,
    "array": Kind.LIST,
    "map": Kind.MAP,
    "struct": Kind.STRUCT,
}
_PARAMETERS = {Kind.DECIMAL: ("precision", "scale"), Kind.VARCHAR: ("length",), Kind.CHAR: ("length",)}
_TOKENS = re.compile(r"\s*([<>(),:]|`(?:[^`]|``)*`|[^\s<>(),:`]+(?: [^\s<>(),:`]+)*)")


@dataclass(frozen=True)
class OrcType:
    """A column's type with all below it.

    :param children: element; key and value; or fields.
    :param names: the fields' names, for a struct.
    :param parameters: ``length`` of char and varchar, ``precision`` and ``scale`` of decimal.
    """

    kind: Kind
    children: tuple[OrcType, ...] = ()
    names: tuple[str, ...] = ()
    parameters: Mapping[str, int] = field(default_factory=dict)

    def walk(self) -> Iterator[OrcType]:
        """This type and all below it, in the order of ORC's column ids."""
        yield self
        for child in self.children:
            yield from child.walk()

    def __str__(self) -> str:
        name = next(text for text, kind in (*_HIVE_NAMES.items(), *_OTHER_NAMES) if kind is self.kind)
        if self.kind is Kind.STRUCT:
            pairs = zip(self.names, self.children, strict=True)
            return f"struct<{','.join(f'{field}:{child}' for field, child in pairs)}>"
        if self.children:
            return f"{name}<{','.join(map(str, self.children))}>"
        if self.parameters:
            return f"{name}({','.join(str(value) for value in self.parameters.values())})"
        return name


_OTHER_NAMES = (("uniontype", Kind.UNION), ("timestamp with local time zone", Kind.TIMESTAMP_INSTANT))

KEY_COLUMNS = ("originalTransaction", "bucket", "rowId")
ACID_COLUMNS = ("operation", *KEY_COLUMNS, "currentTransaction", "row")
_ACID_KINDS = (Kind.INT, Kind.BIGINT, Kind.INT, Kind.BIGINT, Kind.BIGINT)


def acid_schema(columns: Sequence[Column]) -> OrcType:
    """The type of an ACID file's rows (Hive's ``OrcRecordUpdater.createEventSchema``) for a table's columns.

    :raises UnsupportedTableError: a column's type is not supported.
    """
    row = OrcType(
        Kind.STRUCT,
        tuple(parse_hive_type(column.name, column.type) for column in columns),
        tuple(column.name for column in columns),
    )
    return OrcType(Kind.STRUCT, (*(OrcType(kind) for kind in _ACID_KINDS), row), ACID_COLUMNS)


def is_acid(schema: OrcType) -> bool:
    """Whether these are the six columns of an ACID file, as ORC's ``SchemaEvolution`` recognises them."""
    return tuple(name.lower() for name in schema.names) == tuple(name.lower() for name in ACID_COLUMNS) and tuple(
        child.kind for child in schema.children
    ) == (*_ACID_KINDS, Kind.STRUCT)


def parse_hive_type(column: str, text: str) -> OrcType:
    """A type as the metastore writes it.

    :param column: how errors call the column.
    :raises UnsupportedTableError: the type is not known, or not supported.
    """
    tokens = _TOKENS.findall(text)
    try:
        found, rest = _parse(tokens)
        if rest:
            raise ValueError(f"unexpected {rest[0]!r}")
    except (ValueError, IndexError) as error:
        raise UnsupportedTableError(
            f"column {column}", f"the type {text} is not supported ({error})", "compact this table with Hive"
        ) from error
    return found


def _parse(tokens: list[str]) -> tuple[OrcType, list[str]]:
    name = tokens[0].lower()
    if name not in _HIVE_NAMES:
        raise ValueError(f"{name} is not a type this release knows")
    kind, rest = _HIVE_NAMES[name], tokens[1:]
    if kind in (Kind.LIST, Kind.MAP, Kind.STRUCT):
        return _parse_nested(kind, rest)
    if kind is Kind.DECIMAL and rest[:1] != ["("]:
        return OrcType(kind, parameters={"precision": 10, "scale": 0}), rest
    if kind not in _PARAMETERS:
        return OrcType(kind), rest
    names = _PARAMETERS[kind]
    end = rest.index(")")
    values = [int(token) for token in rest[1:end] if token != ","]
    if kind is Kind.DECIMAL and len(values) == 1:
        values.append(0)
    return OrcType(kind, parameters=dict(zip(names, values, strict=True))), rest[end + 1 :]


def _parse_nested(kind: Kind, rest: list[str]) -> tuple[OrcType, list[str]]:
    if rest[0] != "<":
        raise ValueError("a < is missing")
    children, names = [], []
    while rest[0] != ">":
        rest = rest[1:]
        if kind is Kind.STRUCT:
            names.append(rest[0].strip("`").replace("``", "`"))
            if rest[1] != ":":
                raise ValueError("a : is missing")
            rest = rest[2:]
        child, rest = _parse(rest)
        children.append(child)
        if rest[0] not in (",", ">"):
            raise ValueError(f"unexpected {rest[0]!r}")
    expected = {Kind.LIST: 1, Kind.MAP: 2}.get(kind, len(children))
    if len(children) != expected or not children:
        raise ValueError(f"{len(children)} types where {expected} are needed")
    return OrcType(kind, tuple(children), tuple(names)), rest[1:]


def from_footer(types: Sequence[Any]) -> OrcType:
    """The root type of a footer's list of types.

    :raises ValueError: the list does not form a tree, is nested too deep, or holds a kind this release does not know.
    """

    def build(index: int, level: int) -> tuple[OrcType, int]:
        if level > MAX_NESTING:
            raise ValueError(f"its types are nested deeper than {MAX_NESTING}")
        node, children, following = types[index], [], index + 1
        for subtype in node.subtypes:
            # Each column id once and in its order: no loop, no type in two places.
            if subtype != following or subtype >= len(types):
                raise ValueError("its list of types is not in column order")
            child, following = build(subtype, level + 1)
            children.append(child)
        kind = Kind(node.kind)
        if len(children) not in _CHILDREN.get(kind, _NO_CHILDREN):
            raise ValueError(f"a {kind.name.lower()} among its types has {len(children)} types below it")
        if len(node.fieldNames) != (len(children) if kind is Kind.STRUCT else 0):
            raise ValueError(f"a {kind.name.lower()} among its types has {len(node.fieldNames)} names of fields")
        values = {"length": node.maximumLength, "precision": node.precision, "scale": node.scale}
        parameters = {name: values[name] for name in _PARAMETERS.get(kind, ())}
        return OrcType(kind, tuple(children), tuple(node.fieldNames), parameters), following

    if not types:
        raise ValueError("it has no list of types")
    root, end = build(0, 1)
    if end != len(types):
        raise ValueError("its list of types has loose ends")
    return root


@dataclass(frozen=True)
class FooterType:
    """One entry of a footer's list of types."""

    kind: int
    subtypes: tuple[int, ...]
    field_names: tuple[str, ...]
    parameters: Mapping[str, int]


def to_footer(schema: OrcType) -> tuple[FooterType, ...]:
    """A footer's list of types for a root type."""
    entries: list[FooterType] = []

    def add(node: OrcType, index: int) -> int:
        following, subtypes = index + 1, []
        place = len(entries)
        entries.append(FooterType(0, (), (), {}))
        for child in node.children:
            subtypes.append(following)
            following = add(child, following)
        entries[place] = FooterType(int(node.kind), tuple(subtypes), node.names, node.parameters)
        return following

    add(schema, 0)
    return tuple(entries)


def as_written(schema: OrcType) -> OrcType:
    """The same type with char and varchar as string: their bytes in a file are the same, only the footer differs."""
    children = tuple(as_written(child) for child in schema.children)
    if schema.kind in (Kind.CHAR, Kind.VARCHAR):
        return OrcType(Kind.STRING)
    return OrcType(schema.kind, children, schema.names, schema.parameters)


def can_become(source: OrcType, target: OrcType) -> bool:
    """Whether every value of ``source`` is the same value of ``target``, as Hive reads it after an ALTER TABLE.

    Fields that ``target`` has at the end of a struct and ``source`` has not are NULL (Hive's positional evolution).
    """
    if source.kind is not target.kind:
        return _widens(source.kind, target.kind)
    if source.kind is Kind.DECIMAL:
        # Hive 0.11 wrote decimals without precision, each value with a scale of its own.
        if not source.parameters["precision"]:
            return False
        scale_gain = target.parameters["scale"] - source.parameters["scale"]
        return 0 <= scale_gain <= target.parameters["precision"] - source.parameters["precision"]
    if source.kind is Kind.VARCHAR:
        return source.parameters["length"] <= target.parameters["length"]
    # Every Hive finds fields by their exact names below the table's columns (ORC's SchemaEvolution).
    if source.kind is Kind.STRUCT and source.names != target.names[: len(source.names)]:
        return False
    return source.parameters == target.parameters and all(map(can_become, source.children, target.children))


def common_text(one: OrcType, other: OrcType) -> OrcType | None:
    """The type of files that hold texts of both, none of them cut; None where one of them is no text, or is padded.

    Readers cut each value to the length that the table says, whatever file it is in.
    """
    if not {one.kind, other.kind} <= {Kind.STRING, Kind.VARCHAR}:
        return None
    if Kind.STRING in (one.kind, other.kind):
        return OrcType(Kind.STRING)
    return max(one, other, key=lambda text: text.parameters["length"])


def can_be_written(schema: OrcType) -> bool:
    """Whether values of a type can be written as they were read."""
    # A decimal without precision cannot become itself.
    return can_become(schema, schema) and all(node.kind in _HIVE_NAMES.values() for node in schema.walk())


def _widens(source: Kind, target: Kind) -> bool:
    if source in INTEGERS and target in INTEGERS:
        return source < target
    return (source, target) in ((Kind.FLOAT, Kind.DOUBLE), (Kind.VARCHAR, Kind.STRING))
