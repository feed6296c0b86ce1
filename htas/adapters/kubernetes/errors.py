"""What is wrong with an object, and where in it."""

from __future__ import annotations


class ObjectError(ValueError):
    """A field that cannot be understood; `path` is as in `spec.containers[0].resources.requests.cpu`."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"{path}: {what}")
        self.path = path
        self.what = what
