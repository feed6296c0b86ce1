"""What a value looks like in a file, for JSON schemas: an amount is a number in the model, and `8Gi` in the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema

_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}


@dataclass(frozen=True, slots=True)
class Written:
    """Marks a value type: text of a `form` (a regular expression for all of it), or a number where one may be written.

    A schema refuses nothing that the loader takes; what it cannot say (a limit below another) the loader still tells.
    """

    form: str
    number: Literal["integer", "number"] | None = None
    minimum: int | None = None

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        found = {_BOUNDS.get(key, key): value for key, value in handler(core_schema).items()}
        text = {"pattern": f"^({self.form})$"}
        if self.number is None:
            lengths = {key: found[key] for key in ("maxLength",) if key in found}
            return {"type": "string", **text, **lengths}
        bounds = {key: found[key] for key in _BOUNDS.values() if key in found}
        least = {"minimum": self.minimum} if self.minimum is not None and "exclusiveMinimum" not in bounds else {}
        return {"type": [self.number, "string"], **text, **least, **bounds}
