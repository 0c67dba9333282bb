"""What a field's value may be, with the words for saying so."""

from collections.abc import Callable
from typing import Any, NamedTuple

from vcachediag.requests.where import Where, describe, quote


class Kind(NamedTuple):
    """A kind of JSON value: `fits` decides, `says` completes "must be ..."."""

    says: str
    fits: Callable[[Any], bool]

    def check(self, where: Where, name: str, value: Any) -> Any:
        """Return `value` if it is of this kind.

        Raises:
            RequestFileError: it is not; the message names the field and both kinds.

        """
        if not self.fits(value):
            raise where.error(f"{quote(name)} must be {self.says}, not {describe(value)}")
        return value


def _whole(value: Any) -> bool:
    # JSON's `true` is an int to Python.
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, float) or _whole(value)


def _list_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(fits, value))


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _filled(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _token_id(value: Any) -> bool:
    return _whole(value) and value >= 0


_texts = _list_of(_text)

ANY = Kind("anything", lambda _: True)
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
TEXT = Kind("a string", _text)
FILLED = Kind("a string that is not empty", _filled)
TEXTS = Kind("a list of strings", _texts)
TEXT_OR_TEXTS = Kind("a string or a list of strings", lambda value: _text(value) or _texts(value))
REFERENCES = Kind("a list of paths and data URLs", _list_of(_filled))
IDENTIFIERS = Kind(
    "a list of strings that are not empty, or null",
    _list_of(lambda value: value is None or _filled(value)),
)
OBJECT = Kind("an object", lambda value: isinstance(value, dict))
LIST = Kind("a list", lambda value: isinstance(value, list))

INTEGER = Kind("a whole number", _whole)
COUNT = Kind("a whole number of at least 0", _token_id)
LIMIT = Kind("a whole number of at least 1", lambda value: _whole(value) and value >= 1)
TOKEN_IDS = Kind("a list of token ids, whole numbers of at least 0", _list_of(_token_id))

NUMBER = Kind("a number", _number)
NOT_NEGATIVE = Kind("a number of at least 0", lambda value: _number(value) and value >= 0)
POSITIVE = Kind("a number above 0", lambda value: _number(value) and value > 0)
SHARE = Kind("a number from 0 to 1", lambda value: _number(value) and 0 <= value <= 1)
ADAPTER = Kind(
    "`name=path` of an adapter",
    lambda value: _text(value) and all(value.partition("=")[::2]),
)
