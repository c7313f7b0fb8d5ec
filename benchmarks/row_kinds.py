"""What the benchmark's rows are like: a quickstart's orders, and TPC-DS's sales in shops and on the web."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from airflow_provider_acid.merge.orc.schema import OrcType, acid_schema
from airflow_provider_acid.plan.plan import Column
from tests.harness.generated_table import COLUMNS, decimals, orders

_ITEMS_OF_A_SALE = 12


@dataclass(frozen=True)
class RowKind:
    """A kind of rows.

    :param types: Hive's type of each column, by its name.
    :param make: so many rows from a number on; the same ones for the same arguments.
    """

    types: Mapping[str, str]
    make: Callable[[int, int], pa.StructArray] = field(repr=False)

    @property
    def columns(self) -> tuple[Column, ...]:
        """As plans have them."""
        return tuple(Column(name, kind) for name, kind in self.types.items())

    @property
    def orc_schema(self) -> OrcType:
        """Of an ACID file."""
        return acid_schema(self.columns)

    @property
    def arrow_type(self) -> pa.StructType:
        """Of a row."""
        return self.make(0, 0).type


def _sales(number: str, ids: Mapping[str, int], cents: Mapping[str, int], texts: Mapping[str, int]) -> RowKind:
    """Sales of several items each.

    :param number: the column with the sale's number.
    :param ids: how many there are of what a column names.
    :param cents: the most of each amount.
    :param texts: bytes that are different in each row, written as twice as many digits.
    """

    def make(first: int, count: int) -> pa.StructArray:
        random = np.random.default_rng(first)
        numbers = np.arange(first, first + count, dtype=np.int64)
        columns: list[pa.Array[Any]] = [pa.array(numbers // _ITEMS_OF_A_SALE)]
        columns += [pa.array(random.integers(1, most, count, np.int32, endpoint=True)) for most in ids.values()]
        columns += [decimals(random.integers(0, most, count), 7) for most in cents.values()]
        for length in texts.values():
            ends = pa.py_buffer((np.arange(count + 1, dtype=np.int32) * 2 * length).tobytes())
            digits = random.bytes(count * length).hex().encode()
            columns.append(pa.StringArray.from_buffers(count, ends, pa.py_buffer(digits)))
        return pa.StructArray.from_arrays(columns, names=list(types))

    types = {number: "bigint", **dict.fromkeys(ids, "int"), **dict.fromkeys(cents, "decimal(7,2)")}
    types |= dict.fromkeys(texts, "string")
    return RowKind(types, make)


ORDERS = RowKind(COLUMNS, lambda first, count: orders("2024-03-01", first, count))
"""Some 16 bytes each, as stored."""

STORE_SALES = _sales(
    "ss_ticket_number",
    {
        "ss_sold_date_sk": 1823,
        "ss_sold_time_sk": 86_400,
        "ss_item_sk": 300_000,
        "ss_customer_sk": 12_000_000,
        "ss_cdemo_sk": 1_920_800,
        "ss_hdemo_sk": 7200,
        "ss_addr_sk": 6_000_000,
        "ss_store_sk": 1002,
        "ss_promo_sk": 1500,
        "ss_quantity": 100,
    },
    {
        "ss_wholesale_cost": 10_000,
        "ss_list_price": 20_000,
        "ss_sales_price": 20_000,
        "ss_ext_discount_amt": 500_000,
        "ss_ext_sales_price": 2_000_000,
        "ss_ext_wholesale_cost": 1_000_000,
        "ss_ext_list_price": 2_000_000,
        "ss_ext_tax": 180_000,
        "ss_coupon_amt": 500_000,
        "ss_net_paid": 2_000_000,
        "ss_net_paid_inc_tax": 2_180_000,
        "ss_net_profit": 1_000_000,
    },
    {},
)
"""Some 60 bytes each, as stored."""

WEB_SALES = _sales(
    "ws_order_number",
    {
        "ws_sold_date_sk": 1823,
        "ws_sold_time_sk": 86_400,
        "ws_ship_date_sk": 1943,
        "ws_item_sk": 300_000,
        "ws_bill_customer_sk": 12_000_000,
        "ws_bill_cdemo_sk": 1_920_800,
        "ws_bill_hdemo_sk": 7200,
        "ws_bill_addr_sk": 6_000_000,
        "ws_ship_customer_sk": 12_000_000,
        "ws_ship_cdemo_sk": 1_920_800,
        "ws_ship_hdemo_sk": 7200,
        "ws_ship_addr_sk": 6_000_000,
        "ws_web_page_sk": 3000,
        "ws_web_site_sk": 54,
        "ws_ship_mode_sk": 20,
        "ws_warehouse_sk": 20,
        "ws_promo_sk": 1500,
        "ws_quantity": 100,
    },
    {
        "ws_wholesale_cost": 10_000,
        "ws_list_price": 30_000,
        "ws_sales_price": 30_000,
        "ws_ext_discount_amt": 3_000_000,
        "ws_ext_sales_price": 3_000_000,
        "ws_ext_wholesale_cost": 1_000_000,
        "ws_ext_list_price": 3_000_000,
        "ws_ext_tax": 270_000,
        "ws_coupon_amt": 3_000_000,
        "ws_ext_ship_cost": 1_500_000,
        "ws_net_paid": 3_000_000,
        "ws_net_paid_inc_tax": 3_270_000,
        "ws_net_paid_inc_ship": 4_500_000,
        "ws_net_paid_inc_ship_tax": 4_770_000,
        "ws_net_profit": 2_000_000,
    },
    {"ws_session": 32, "ws_path": 64},
)
"""Some 200 bytes each, as stored: TPC-DS's columns, half of that, and two texts as logs of a web shop have them."""
