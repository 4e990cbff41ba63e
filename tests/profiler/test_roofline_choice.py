"""Which roof is taken: measured before a data sheet, a simulation's own peaks, and why there is none."""

from pathlib import Path
from typing import Any

import pytest

from profiler.ceilings import Ceilings, GemmRate, Machine
from profiler.ceilings_store import keep_ceilings
from profiler.hardware import all_cards, card_of_device, find_card
from profiler.roofline import Roof
from profiler.roofline_choice import data_sheet_roof, roofs_of

H200 = {"device": "cuda", "name": "NVIDIA H200", "threads": 2}
PEAKS = {"dtype": "bfloat16", "flops_per_s": 9.89e14, "bytes_per_s": 4.8e12}


def ceilings(name: str = "NVIDIA H200", *dtypes: str, load: float | None = None) -> Ceilings:
    gemm = tuple(GemmRate(dtype, 7e14, 8192) for dtype in dtypes or ("bfloat16",))
    return Ceilings(Machine("cuda", name, None), "2026-11-30T10:00:00", "2.13", gemm, 4.1e12, 2**30, load)


def meta(hardware: object = H200, dtype: object = "bfloat16", **more: Any) -> dict[str, Any]:
    return {"provenance": "measured", "hardware": hardware, "model": {"dtype": dtype}, **more}


@pytest.fixture(autouse=True)
def no_kept_ceilings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("device_name", "card"),
    [
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM5"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("A100-SXM4-40GB", "A100 SXM4 40GB"),  # an older driver
        ("Tesla T4", "T4"),
        ("AMD Instinct MI300X", "MI300X"),
        ("NVIDIA H200 NVL", None),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", None),
        ("AMD Instinct MI250X", None),  # a device is one of its two dies
        ("AMD EPYC", None),
        ("", None),
    ],
)
def test_a_device_is_a_card_by_its_whole_name(device_name: str, card: str | None) -> None:
    found = card_of_device(device_name)
    assert (found.name if found else None) == card


def test_no_two_cards_are_one_device() -> None:
    names = [name for card in all_cards() for name in card.values.get("device_names", ())]
    assert len(names) == len(set(names)) > 20


def test_the_data_sheet_is_taken_where_nothing_was_measured() -> None:
    roofs = roofs_of(meta())
    assert roofs.chosen is not None
    assert (roofs.roof, roofs.chosen.source) == (Roof("bfloat16", 989e12, 4.8e12, "memory"), "data sheet")
    assert "h200_sxm.yaml" in roofs.chosen.words
    assert roofs.chosen.cache_bytes == 50 * 2**20
    assert roofs.others == ()


def test_what_was_measured_goes_first_and_the_data_sheet_stays_beside_it() -> None:
    roofs = roofs_of(meta(H200 | {"ceilings": ceilings(load=3.0).as_json()}))
    assert roofs.chosen is not None
    assert (roofs.roof, roofs.chosen.source) == (Roof("bfloat16", 7e14, 4.1e12, "copy"), "measured")
    assert roofs.chosen.words.startswith("measured on NVIDIA H200, 2026-11-30, while other programs ran")
    assert [other.source for other in roofs.others] == ["data sheet"]


def test_ceilings_kept_for_the_machine_are_found_by_its_name() -> None:
    keep_ceilings(ceilings())
    chosen = roofs_of(meta()).chosen
    assert chosen is not None
    assert chosen.source == "measured"


def test_a_dtype_that_was_not_measured_falls_to_the_data_sheet() -> None:
    roofs = roofs_of(meta(H200 | {"ceilings": ceilings().as_json()}, "float16"))
    assert roofs.chosen is not None
    assert (roofs.chosen.source, roofs.chosen.roof.dtype) == ("data sheet", "float16")
    assert roofs.ceilings is not None


def test_a_simulated_trace_has_its_own_peaks_and_no_other_roof() -> None:
    keep_ceilings(ceilings())
    hardware = {"name": "H200 SXM", "peaks": PEAKS, "source": "a page"}
    roofs = roofs_of(meta(hardware, provenance="simulated"))
    assert roofs.chosen is not None
    assert (roofs.chosen.source, roofs.chosen.origin, roofs.others) == ("simulation", "a page", ())
    assert roofs.roof == Roof("bfloat16", 9.89e14, 4.8e12, "memory")


@pytest.mark.parametrize(
    ("known", "why"),
    [
        (meta(dtype=None), "does not say its dtype"),
        (meta(None), "does not say what machine"),
        (meta({"device": "cpu", "name": "AMD EPYC", "threads": 2}), "No ceilings were measured for AMD EPYC"),
        (
            meta({"name": "X", "device": "cuda", "ceilings": ceilings("X").as_json()}, "float16"),
            "not of float16",
        ),
        (meta({"name": "H200 SXM"}, provenance="simulated"), "what peaks"),
        ({}, "dtype"),
    ],
)
def test_where_no_roof_is_known_it_is_said_why(known: dict[str, Any], why: str) -> None:
    roofs = roofs_of(known)
    assert roofs.chosen is None
    assert roofs.lacking is not None
    assert why in roofs.lacking


def test_a_card_without_the_peak_has_no_roof_and_doubts_are_told() -> None:
    assert data_sheet_roof(find_card("T4")[0], "bfloat16") is None
    assert data_sheet_roof(find_card("H200")[0], "float64") is None
    assert data_sheet_roof(None, "bfloat16") is None
    doubted = data_sheet_roof(find_card("MI355X")[0], "bfloat16")
    assert doubted is not None
    assert doubted.unverified == ("bandwidth_tb_s", "bf16_dense_tflops")
    assert "not confirmed" in doubted.words
