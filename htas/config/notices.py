"""Receivers of notices (docs/notices.md)."""

from __future__ import annotations

from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from htas.config.values import Name, Section, Switch, Text
from htas.model.notices import TOLD, Form, Occasion


class SecretSetting(Section):
    """Where a secret text is kept: one of the two."""

    file: Text | None = Field(
        default=None,
        description="A file with it in one line, relative to this one unless absolute; read for each notice.",
    )
    env: Text | None = Field(default=None, description="A variable of the environment.")

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.file is None) == (self.env is None):
            raise ValueError("needs one of file and env")
        return self


class NoticeSetting(Section):
    """A receiver of notices, posted to its web address. Each notice is delivered at least once, within a day."""

    name: Name = Field(
        description="Its name in logs, and of the file that queues its notices: addresses are never logged."
    )
    url: Text | None = Field(default=None, description="https://…, where it is no secret. null: see urlFrom.")
    url_from: SecretSetting | None = Field(
        default=None, description="Where the address is kept: whoever knows a Slack address may post to it."
    )
    token_from: SecretSetting | None = Field(
        default=None, description="A token to send (Authorization: Bearer …). null: none."
    )
    form: Form = Field(default=Form.JSON, description="json: a document; slack: as its incoming webhooks take it.")
    on: tuple[Occasion, ...] = Field(
        default=TOLD, min_length=1, description="limit-reached, launch-failed, drain-undone, budget. All of them."
    )
    insecure: Switch = Field(
        default=False, description="true: the address may be http://; notices and the token are then sent in the clear."
    )

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, url: str | None) -> str | None:
        if url is None:
            return None
        try:
            parts = urlsplit(url)
            is_sound = parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_sound = False
        if not is_sound:
            raise ValueError("is no address; write such as https://chat.example/hooks/7")
        if parts.username is not None or parts.password is not None:
            raise ValueError("has a password in it; keep the whole address in a file, and name that in urlFrom")
        return url

    @model_validator(mode="after")
    def _is_reachable(self) -> Self:
        if (self.url is None) == (self.url_from is None):
            raise ValueError("needs one of url and urlFrom")
        if self.url is not None and self.url.startswith("http://") and not self.insecure:
            raise ValueError("has an address that begins with http://; write https://, or insecure: true")
        return self
