"""A workload file's line of JSON, read field by field; what is wrong is named with its mend."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from engine.errors import WorkloadError

__all__ = ["MAX_ARRIVAL_S", "MAX_LENGTH_TOKENS", "Fields", "decode_object", "shown", "wrong"]

MAX_LENGTH_TOKENS = 10_000_000
MAX_ARRIVAL_S = 10_000_000


def decode_object(line: bytes) -> dict[str, Any]:
    """A line's JSON object. Raises WorkloadError that names the fault, not yet file and line."""
    try:
        value = _DECODER.decode(line.decode())
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
        raise WorkloadError(f'{shown(value)} is no object: write {{"rid": "a", "prompt_tokens": 100}}')
    return value


def _no_constant(name: str) -> float:
    raise WorkloadError(f"{name} is no number: give a finite one")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise WorkloadError(f"{shown(twice)} is given twice: keep one")
    return value


_DECODER = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_object)


class Fields:
    """Typed access to a line's fields; a field that is absent is None, a null one is refused."""

    def __init__(self, values: Mapping[str, Any], vocab_size: int) -> None:
        self._values = values
        self._vocab_size = vocab_size

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def need(self, *keys: str) -> None:
        """Refuse a line that lacks one of `keys`."""
        for key in keys:
            if key not in self._values:
                raise WorkloadError(f"{key} is missing: the format needs {', '.join(keys)}")

    def text(self, key: str) -> str | None:
        """A text that is not empty."""
        value = self._values.get(key)
        if key not in self._values:
            return None
        if not isinstance(value, str) or not value:
            raise wrong(key, value, "a text that is not empty")
        if any("\ud800" <= char <= "\udfff" for char in value):
            raise WorkloadError(f"{key} holds half a surrogate pair: give whole characters")
        return value

    def flag(self, key: str) -> bool:
        """True or false; false if absent."""
        value = self._values.get(key, False)
        if not isinstance(value, bool):
            raise wrong(key, value, "true or false")
        return value

    def whole(self, key: str, least: int, most: int) -> int | None:
        """A whole number in the closed range."""
        if key not in self._values:
            return None
        value = self._values[key]
        if not _is_whole(value) or not least <= value <= most:
            raise wrong(key, value, f"a whole number from {least} to {most}")
        return int(value)

    def number(self, key: str, most: int) -> int | float | None:
        """A number from 0 to `most`; whole numbers stay exact."""
        if key not in self._values:
            return None
        value = self._values[key]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            raise wrong(key, value, f"a number from 0 to {most}")
        return value

    def wholes(self, key: str, most: int) -> Sequence[int] | None:
        """A list of whole numbers from 0 to `most`."""
        if key not in self._values:
            return None
        value = self._values[key]
        if not isinstance(value, list):
            raise wrong(key, value, "a list of whole numbers")
        for item in value:
            if not _is_whole(item) or not 0 <= item <= most:
                raise WorkloadError(f"{key} holds {shown(item)}: give whole numbers from 0 to {most}")
        return value

    def token_ids(self, key: str, least: int) -> Sequence[int] | None:
        """A list of at least `least` of the model's token ids."""
        if key not in self._values:
            return None
        value = self._values[key]
        if not isinstance(value, list) or len(value) < least:
            raise wrong(key, value, "a list of token ids" + (" that is not empty" if least else ""))
        for token in value:
            if not _is_whole(token) or not 0 <= token < self._vocab_size:
                raise WorkloadError(
                    f"{key} holds {shown(token)}: the model's token ids go from 0 to {self._vocab_size - 1}"
                )
        return value


def wrong(key: str, value: object, wanted: str) -> WorkloadError:
    """The refusal of a field's value."""
    return WorkloadError(f"{key} is {shown(value)}: give {wanted}")


def shown(value: object) -> str:
    """A value as JSON, cut to what fits in a one-line message."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**18:
        return f"a number of {math.floor(math.log10(abs(value))) + 1} digits"
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
