"""Values of a query, read strictly: what is wrong is named in one line with its mend."""

import re
from collections.abc import Mapping

__all__ = ["BadQuery", "NotThere", "choice", "text", "whole", "wholes"]

_DIGITS = re.compile(r"-?[0-9]{1,18}")
_SHOWN = 40  # characters of a bad value that a message repeats


class BadQuery(ValueError):
    """A query that cannot be answered; its one line says why, and what to give instead."""


class NotThere(LookupError):
    """A well-formed query for something that the traces do not have."""


def whole(
    query: Mapping[str, str],
    key: str,
    default: int | None = None,
    *,
    least: int | None = None,
    most: int | None = None,
) -> int:
    """A whole number; `default` stands in for a missing one, and without it the number must be given."""
    if key not in query:
        if default is None:
            raise BadQuery(f"{key} is missing: give a whole number, as in {key}=0")
        return default
    return _number(key, query[key], least, most)


def wholes(query: Mapping[str, str], key: str, limit: int) -> list[int]:
    """Up to `limit` whole numbers, not negative, with commas between them; none where the key is missing."""
    given = query.get(key, "")
    values = given.split(",") if given else []
    if len(values) > limit:
        raise BadQuery(f"{key} has {len(values)} numbers: give at most {limit}")
    return [_number(key, value, 0, None) for value in values]


def choice(query: Mapping[str, str], key: str, allowed: tuple[int, ...]) -> int:
    """One of a few whole numbers; it must be given."""
    value = whole(query, key)
    if value not in allowed:
        raise BadQuery(f"{key}={value} is none of {', '.join(map(str, allowed))}")
    return value


def text(query: Mapping[str, str], key: str, most: int) -> str:
    """Up to `most` characters; it must be given."""
    if key not in query:
        raise BadQuery(f"{key} is missing: give a text, as in {key}=r7")
    value = query[key]
    if len(value) > most:
        raise BadQuery(f"{key} has {len(value)} characters: give at most {most}")
    return value


def _number(key: str, given: str, least: int | None, most: int | None) -> int:
    if not _DIGITS.fullmatch(given):
        raise BadQuery(f"{key}={_shown(given)} is not a whole number of at most 18 digits, as in {key}=0")
    value = int(given)
    if least is not None and value < least:
        raise BadQuery(f"{key}={value} is too small: give at least {least}")
    if most is not None and value > most:
        raise BadQuery(f"{key}={value} is too large: give at most {most}")
    return value


def _shown(given: str) -> str:
    cut = given if len(given) <= _SHOWN else given[:_SHOWN] + "..."
    return cut.encode("unicode_escape").decode()
