"""The numbers of a price list in a terminal: each stands under its own head."""

from profiler.price_rows import Options, PriceRow
from tests.support.price_row import ROW
from ui.price_cells import PRICE_HEADS, empty_table, price_cells
from ui.words import UNKNOWN


def test_each_number_stands_under_its_head() -> None:
    heads = [head.replace("-\n", "").replace("\n", " ") for head in PRICE_HEADS]
    assert dict(zip(heads, price_cells(ROW), strict=True)) == {
        "lost": "10 %",
        "first chunk": "11.0 ms",
        "last chunk": "22.0 ms",
        "longest wait": "33.0 ms",
        "ITL p99": "44.0 ms",
        "TTFT p99": "55.0 ms",
        "TTFT longest": "66.0 ms",
        "activations": "88.0 MiB",
        "KV tokens": "99,000",
    }


def test_what_is_unknown_is_no_zero() -> None:
    assert set(price_cells(PriceRow(Options(None)))) == {UNKNOWN}
    assert price_cells(PriceRow(Options(None), plateau_share=1.0))[0] == "0 %"


def test_the_options_stand_before_the_numbers() -> None:
    heads = [str(column.header) for column in empty_table(PRICE_HEADS).columns]
    assert heads == ["options", *PRICE_HEADS]
