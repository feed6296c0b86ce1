"""What is wrong with an object, and where in it."""

from __future__ import annotations

import re

import msgspec

_PLACED = re.compile(r"(?P<what>.*) - at `\$\.?(?P<path>.*)`", re.DOTALL)


LONGEST = 500
"""Characters that are told of what is wrong. An annotation may have 262,144, and quoted it has four times as many."""


class Fault(msgspec.Struct, frozen=True):
    """A field that cannot be understood; `path` is as in `spec.containers[0].resources.requests.cpu`."""

    path: str
    what: str

    def __post_init__(self) -> None:
        if len(self.what) > LONGEST:
            half = LONGEST // 2
            msgspec.structs.force_setattr(self, "what", f"{self.what[:half]} … {self.what[-half:]}")


def title(kind: str, key: tuple[str, str]) -> str:
    """An object as people are told of it, by its namespace (empty: none) and name: `Pod default/web-1`."""
    return f"{kind} {'/'.join(filter(None, key))}"


Faults = list[Fault]
"""Translation adds to it and goes on, so that all that is wrong with an object is told at once."""


UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError)
"""What decoding an object may raise: wrong types, and texts that are not UTF-8."""


def decoding_fault(error: Exception) -> str:
    """A decoder's complaint in the words of this project: `spec.containers: expected array, got str`."""
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8: byte 0x{error.object[error.start]:02x} in a text"
    match = _PLACED.fullmatch(str(error))
    what = (match["what"] if match is not None else str(error)).replace("`", "")
    what = what[:1].lower() + what[1:]
    return f"{match['path']}: {what}" if match is not None and match["path"] else what
