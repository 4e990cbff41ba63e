"""hardware.toml holds every card and number of the collected table."""

import csv
from pathlib import Path

import pytest

from profiler.hardware import all_cards

TABLE = Path(__file__).resolve().parents[3] / "shared" / "gpus.csv"
KEYS = {
    "mem_gib": "memory_gib",
    "mem_tb_s": "bandwidth_tb_s",
    "bf16_dense_tflops": "bf16_dense_tflops",
    "fp8_dense_tflops": "fp8_dense_tflops",
    "fp32_tflops": "fp32_tflops",
    "l2_mib": "l2_mib",
    "sms_or_cus": "sms_or_cus",
}

pytestmark = pytest.mark.skipif(not TABLE.is_file(), reason=f"no table of GPUs at {TABLE}")


def test_every_number_is_that_of_the_table_and_what_it_lacks_is_unknown() -> None:
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    cards = {card.name: card.values for card in all_cards()}
    assert cards.keys() == rows.keys()
    for name, row in rows.items():
        for column, key in KEYS.items():
            assert cards[name].get(key) == (float(row[column]) if row[column] else None), (name, key)
        assert bool(row["unverified_fields"]) == bool(cards[name].get("unverified")), name
        assert bool(row["note"]) == bool(cards[name].get("note")), name
