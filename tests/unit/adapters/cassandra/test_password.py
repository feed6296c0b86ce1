"""The password is in a file that may be renewed while the daemon runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from htas.adapters.cassandra.session import FilePassword
from htas.ports import RefusedError


def test_each_connection_is_made_with_the_password_of_its_moment(tmp_path: Path) -> None:
    file = tmp_path / "password"
    provider = FilePassword("htas", file)
    for password in ("first", "second"):
        file.write_text(f"{password}\n")
        assert provider.new_authenticator("host").initial_response() == f"\0htas\0{password}".encode()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"store\.cassandra\.passwordFile: .*/password: cannot be read"):
        FilePassword("htas", tmp_path / "password").new_authenticator("host")
