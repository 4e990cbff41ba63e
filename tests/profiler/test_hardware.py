"""Cards by the beginning of their names, and their peaks, or the option that gives what is unknown."""

import pytest

from engine.errors import ConfigError
from profiler.hardware import DTYPES, Overrides, all_cards, find_card, peaks_of


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("H200", "H200 SXM"),
        ("h200", "H200 SXM"),
        ("  h200 sxm ", "H200 SXM"),
        ("h20", "H20 SXM"),  # a whole word goes before the beginning of one
        ("L4", "L4"),
        ("A10", "A10"),
        ("gb200", "GB200 (per GPU)"),
        ("mi300", "MI300X"),
    ],
)
def test_a_beginning_names_a_card(wanted: str, name: str) -> None:
    card, note = find_card(wanted)
    assert (card.name, note) == (name, None)


@pytest.mark.parametrize(
    ("wanted", "name", "others"),
    [
        ("a100", "A100 SXM4 80GB", "A100 PCIe 80GB, A100 SXM4 40GB"),
        ("H100", "H100 SXM5", "H100 PCIe"),
        ("rtx", "RTX PRO 6000 Blackwell Server", "RTX A6000, RTX 3090, RTX 4090"),
    ],
)
def test_of_several_the_largest_sxm_card_is_taken_and_said(wanted: str, name: str, others: str) -> None:
    card, note = find_card(wanted)
    assert card.name == name
    assert note == f"--gpu {wanted}: taken as {name}; other cards of that name: {others}"


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        ("4090", "give RTX 4090"),
        ("h2oo", "H200 SXM"),
        ("MI300Y", "MI300X"),
        ("", "one of T4, "),
        ("banana", "one of T4, "),
    ],
)
def test_an_unknown_card_is_refused_with_names_that_come_near(wanted: str, near: str) -> None:
    with pytest.raises(ConfigError, match=f"^--gpu {wanted!r} is not known: give ") as caught:
        find_card(wanted)
    assert near in str(caught.value)
    assert "\n" not in str(caught.value)


def test_peaks_are_in_units_of_one() -> None:
    peaks = peaks_of(find_card("h200")[0], "bfloat16", 2)
    assert (peaks.flops_per_s, peaks.bytes_per_s) == (989e12, 4.8e12)
    assert (peaks.memory_bytes, peaks.num_devices) == (141 * 2**30, 2)
    assert peaks.link_bytes_per_s == 450e9
    assert peaks.ridge == pytest.approx(206, abs=0.1)
    assert peaks_of(find_card("h200")[0], "float32").flops_per_s == 66.91e12


@pytest.mark.parametrize(
    ("wanted", "dtype", "devices", "option"),
    [
        ("T4", "bfloat16", 1, "--peak-tflops"),
        ("B300", "float32", 1, "--peak-tflops"),
        ("H200", "int8", 1, "--peak-tflops"),
        ("Ascend", "bfloat16", 1, "--bandwidth"),
        ("L40S", "bfloat16", 2, "--link-bandwidth"),
    ],
)
def test_an_unknown_peak_is_refused_with_the_option_that_gives_it(
    wanted: str, dtype: str, devices: int, option: str
) -> None:
    card, _ = find_card(wanted)
    with pytest.raises(ConfigError, match=f"^--gpu {card.name}: its .* is not known: give {option}$"):
        peaks_of(card, dtype, devices)
    given = Overrides(tflops=65, bandwidth_tb_s=1.5, link_gb_s=32)
    peaks = peaks_of(card, dtype, devices, given)
    assert (peaks.flops_per_s, peaks.bytes_per_s, peaks.link_bytes_per_s) == (65e12, 1.5e12, 32e9)


def test_every_card_is_whole() -> None:
    cards = all_cards()
    assert len({card.name.lower() for card in cards}) == len(cards) == 32
    for card in cards:
        assert card.memory_bytes > 0
        unverified = card.values.get("unverified", [])
        assert set(unverified) <= card.values.keys(), card.name
        assert card.values.get("source") or unverified, card.name
        assert ("link_gb_s" in card.values) == ("link_source" in card.values), card.name
        known = [card.values[key] for key in (*DTYPES.values(), "bandwidth_tb_s") if key in card.values]
        assert all(value > 0 for value in known), card.name


def test_sources_and_doubts_go_along() -> None:
    told = find_card("h200")[0].provenance()
    assert "h200_sxm.yaml" in told["source"]
    assert told["unverified"] == ["l2_mib"]
    assert "141 is GB" in told["note"]
