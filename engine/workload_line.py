"""One line of a workload file, checked field by field before anything runs."""

import difflib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.errors import WorkloadError

__all__ = ["MAX_ARRIVAL_S", "MAX_LENGTH_TOKENS", "WorkloadLine", "parse_line"]

MAX_LENGTH_TOKENS = 10_000_000
MAX_ARRIVAL_S = 10_000_000.0
MAX_TEMPERATURE = 1000.0
MAX_SEED = 2**63 - 1
PROMPT_KEYS = ("prompt_tokens", "prompt", "prompt_token_ids")
KEYS = (
    "rid",
    "arrival_s",
    *PROMPT_KEYS,
    "max_new_tokens",
    "ignore_eos",
    "temperature",
    "seed",
    "stop_token_ids",
    "prefix_group",
    "prefix_tokens",
)


@dataclass(frozen=True, slots=True)
class WorkloadLine:
    """What a line asks for; exactly one of the three prompts is set. Lengths in tokens."""

    rid: str
    arrival_s: float
    prompt_tokens: int | None
    prompt: str | None
    prompt_token_ids: Sequence[int] | None
    max_new_tokens: int
    ignore_eos: bool
    temperature: float
    seed: int | None
    stop_token_ids: frozenset[int]
    prefix_group: str | None
    prefix_tokens: int


def parse_line(line: bytes, vocab_size: int) -> WorkloadLine:
    """Check one line. Raises WorkloadError that names the field and the mend, not yet file and line."""
    fields = _Fields(_decode(line), vocab_size)
    prompts = [key for key in PROMPT_KEYS if key in fields]
    if len(prompts) != 1:
        given = " and ".join(prompts) or "no prompt"
        raise WorkloadError(f"{given} given: give exactly one of {', '.join(PROMPT_KEYS)}")
    group = fields.text("prefix_group")
    if (group is None) == ("prefix_tokens" in fields):
        raise WorkloadError("prefix_group and prefix_tokens belong together: give both or neither")
    if group is not None and prompts != ["prompt_tokens"]:
        raise WorkloadError(
            f"prefix_group goes with prompt_tokens only: take it off a line with {prompts[0]}"
        )
    prompt_tokens = fields.whole("prompt_tokens", 1, MAX_LENGTH_TOKENS)
    prefix_tokens = fields.whole("prefix_tokens", 1, MAX_LENGTH_TOKENS) or 0
    if prompt_tokens is not None and prefix_tokens > prompt_tokens:
        raise WorkloadError(f"prefix_tokens is {prefix_tokens}: give at most prompt_tokens, {prompt_tokens}")
    rid = fields.text("rid")
    if rid is None:
        raise WorkloadError("rid is missing: give each request its own name")
    return WorkloadLine(
        rid=rid,
        arrival_s=fields.number("arrival_s", MAX_ARRIVAL_S) or 0.0,
        prompt_tokens=prompt_tokens,
        prompt=fields.text("prompt"),
        prompt_token_ids=fields.token_ids("prompt_token_ids", least=1),
        max_new_tokens=fields.whole("max_new_tokens", 1, MAX_LENGTH_TOKENS) or 128,
        ignore_eos=fields.flag("ignore_eos"),
        temperature=fields.number("temperature", MAX_TEMPERATURE) or 0.0,
        seed=fields.whole("seed", 0, MAX_SEED),
        stop_token_ids=frozenset(fields.token_ids("stop_token_ids", least=0) or ()),
        prefix_group=group,
        prefix_tokens=prefix_tokens,
    )


def _decode(line: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(line.decode(), parse_constant=_no_constant, object_pairs_hook=_object)
    except UnicodeDecodeError:
        raise WorkloadError("not UTF-8 text: save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        raise WorkloadError(
            f"no JSON, {error.msg} at column {error.colno}: write one object a line"
        ) from None
    except RecursionError:
        raise WorkloadError("nested too deeply: write one flat object a line") from None
    except ValueError:  # an integer of more digits than Python reads
        raise WorkloadError("a number has too many digits: give a smaller one") from None
    if not isinstance(value, dict):
        raise WorkloadError(f'{_shown(value)} is no object: write {{"rid": "a", "prompt_tokens": 100}}')
    for key in value:
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, 1)
            mend = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(KEYS)}"
            raise WorkloadError(f"{_shown(key)} is no key of a workload line: {mend}")
    return value


def _no_constant(name: str) -> float:
    raise WorkloadError(f"{name} is no number: give a finite one")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise WorkloadError(f"{_shown(twice)} is given twice: keep one")
    return value


class _Fields:
    """Typed access to a line's fields; a field that is absent is None, a null one is refused."""

    def __init__(self, values: Mapping[str, Any], vocab_size: int) -> None:
        self._values = values
        self._vocab_size = vocab_size

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def text(self, key: str) -> str | None:
        value = self._values.get(key)
        if key not in self._values:
            return None
        if not isinstance(value, str) or not value:
            raise _wrong(key, value, "a text that is not empty")
        if any("\ud800" <= char <= "\udfff" for char in value):
            raise WorkloadError(f"{key} holds half a surrogate pair: give whole characters")
        return value

    def flag(self, key: str) -> bool:
        value = self._values.get(key, False)
        if not isinstance(value, bool):
            raise _wrong(key, value, "true or false")
        return value

    def whole(self, key: str, least: int, most: int) -> int | None:
        if key not in self._values:
            return None
        value = self._values[key]
        if not _is_whole(value) or not least <= value <= most:
            raise _wrong(key, value, f"a whole number from {least} to {most}")
        return int(value)

    def number(self, key: str, most: float) -> float | None:
        if key not in self._values:
            return None
        value = self._values[key]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            raise _wrong(key, value, f"a number from 0 to {most:.0f}")
        return float(value)

    def token_ids(self, key: str, least: int) -> Sequence[int] | None:
        if key not in self._values:
            return None
        value = self._values[key]
        if not isinstance(value, list) or len(value) < least:
            raise _wrong(key, value, "a list of token ids" + (" that is not empty" if least else ""))
        for token in value:
            if not _is_whole(token) or not 0 <= token < self._vocab_size:
                raise WorkloadError(
                    f"{key} holds {_shown(token)}: the model's token ids go from 0 to {self._vocab_size - 1}"
                )
        return value


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _wrong(key: str, value: object, wanted: str) -> WorkloadError:
    return WorkloadError(f"{key} is {_shown(value)}: give {wanted}")


def _shown(value: object) -> str:
    """A value as JSON, cut to what fits in a one-line message."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**18:
        return f"a number of {math.floor(math.log10(abs(value))) + 1} digits"
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."
