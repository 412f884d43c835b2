"""What an adapter says of itself, before anything else: its protocol, its names, its capabilities."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from startonce.model.clauses import CLAUSES
from startonce.oracle.wire import misbehaviour as wrong
from startonce.oracle.wire import requests, shape
from startonce.oracle.wire.client import Client, Part
from startonce.oracle.wire.responses import Failed, Unfit
from startonce.oracle.wire.words import CAPABILITIES

START = 30.0
"""Seconds, at least, that an adapter has for its first response: it may have to start a database."""


class About(NamedTuple):
    """What an adapter says of itself.

    Texts are as they came, to be shown by `plain`; only the title and the reasons are safe already.
    """

    implementation: str
    language: str
    version: str
    homepage: str
    database: str
    capabilities: frozenset[str]
    parameter_limit: int | None
    not_applicable: Mapping[str, str]
    join: str | None

    @property
    def title(self) -> str:
        """What it is, in one line that is safe to show."""
        words = (f"{self.implementation} {self.version}", self.language, self.database)
        return " · ".join(wrong.plain(word, 80) for word in words)


def shake(client: Client) -> About:
    """Shake hands with an adapter. Raises `WireError`."""
    about: About
    client.send([Part(requests.request("hello", protocol=wrong.PROTOCOL), "hello", _read)])
    (about,) = client.receive(max(client.timeout, START))
    return about


def _read(response: dict[str, Any]) -> About | Failed:
    if type(response.get("failed")) is str:
        return Failed(response["failed"])
    version, names = response.get("protocol"), response.get("capabilities")
    if type(version) is int and version != wrong.PROTOCOL:
        raise wrong.OtherProtocol(version)
    for name in names if type(names) is list else ():
        if type(name) is str and name not in CAPABILITIES:
            raise wrong.UnknownCapability(name, CAPABILITIES)
    if not shape.validator("hello_response").is_valid(response):
        raise Unfit
    about = About(
        response["implementation"],
        response["language"],
        response["version"],
        response["homepage"],
        response["database"],
        frozenset(response["capabilities"]),
        response.get("parameter_limit"),
        {clause: wrong.plain(why, 200) for clause, why in response.get("not_applicable", {}).items()},
        response.get("join"),
    )
    _consistent(about)
    return about


def _consistent(about: About) -> None:
    able = about.capabilities
    for name in sorted(able):
        for needed in CAPABILITIES[name]:
            if needed not in able:
                raise Unfit(f"the capability {name} needs the capability {needed}")
    if ("processes" in able) != (about.join is not None):
        raise Unfit("the capability processes and the member join come together")
    for clause in about.not_applicable:
        if clause not in CLAUSES:
            raise Unfit(f"not_applicable: there is no clause {wrong.plain(clause, 40)}")
