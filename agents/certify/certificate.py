"""A Certificate: the findings of one target, as versioned JSON, and how it is made."""

import datetime
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tokengym.agents.certify.bench import Bench, CertifySettings
from tokengym.agents.certify.checks import in_order
from tokengym.agents.certify.finding import CHECKS, RESTS, Check, Finding, Severity, Status
from tokengym.agents.certify.sandbox import Limits, Sandbox
from tokengym.agents.certify.source import Source, SourceFailure
from tokengym.agents.certify.sources import is_recorded, open_source, package
from tokengym.agents.certify.sources.python import Unopened
from tokengym.agents.settings import plain, read_plain, typed_words
from tokengym.envs.core.errors import DataError, OptionError, require_one_of
from tokengym.rewards.estimates import Estimate

SCHEMA_VERSION = 2
"""Version of the JSON; it goes up whenever older certificates can no longer be read."""

Progress = Callable[[str, int, int], None]
"""Takes the check that begins, how many are done, and how many there are."""


@dataclass(frozen=True)
class Certificate:
    """Findings for one target.

    Attributes:
        schema: `SCHEMA_VERSION`.
        target: as the user named it.
        package: distribution and version of the environment.
        tokengym: version of the checks.
        date: when it was made, UTC.
        options: of the source.
        settings: how thoroughly it was looked.
        network: whether the environment could reach other machines.
        findings: one for each check, in order.
        harder: options of the setting that was named as harder.
        turns: most replies of an episode that were played.
        kind: see `CertifySettings.kind`, named or guessed; empty if neither.
        finished: whether all checks were begun, so that it is no part of a run that was stopped.
    """

    schema: int
    target: str
    package: str
    tokengym: str
    date: str
    options: Mapping[str, Any]
    settings: CertifySettings
    network: bool
    findings: tuple[Finding, ...]
    harder: Mapping[str, Any] = field(default_factory=dict)
    turns: int = 1
    kind: str = ""
    finished: bool = True

    def failed(self, severity: Severity) -> list[Finding]:
        """Return the failures of a severity that nobody accepted."""
        return [
            finding for finding in self.findings if finding.counts and finding.severity is severity
        ]

    def holds_for(
        self,
        target: str,
        options: Mapping[str, Any],
        settings: CertifySettings,
        harder: Mapping[str, Any],
    ) -> bool:
        """Return whether this is of a target, with the versions that are installed now."""
        made = self.target, self.options, self.settings, self.harder, self.tokengym
        name = self.package.partition(" ")[0]
        same = made == (target, options, settings, harder, version("tokengym"))
        return self.finished and same and self.package in (name, package(name))

    def to_json(self) -> str:
        """Return the certificate as JSON; `read_certificate` reads it."""
        return json.dumps(plain(self), indent=1, allow_nan=False) + "\n"


def read_certificate(path: Path) -> Certificate:
    """Read a certificate.

    Args:
        path: the file, or the folder that holds `certificate.json`.

    Raises:
        DataError: if it is damaged or of another schema.
    """
    file = path / "certificate.json" if path.is_dir() else path
    try:
        data = json.loads(file.read_bytes())
        version = data.get("schema")
        if version == SCHEMA_VERSION:
            return read_plain(Certificate, data)
    except (ValueError, AttributeError) as error:
        raise DataError(f"{file} is no certificate: {error}") from error
    raise DataError(f"{file} has schema {version!r}; this Tokengym reads {SCHEMA_VERSION}")


def certificate_schema() -> dict[str, Any]:
    """Return the JSON schema of a certificate."""
    from pydantic import TypeAdapter

    schema = TypeAdapter(Certificate).json_schema()
    numbers = {name: {"type": "number"} for name in Estimate._fields}
    estimate = {"type": "object", "properties": numbers, "required": list(numbers)}
    return schema | {"$defs": schema["$defs"] | {"Estimate": estimate}}


def certify(
    source: Source,
    target: str = "",
    settings: CertifySettings | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    harder: tuple[Source, Mapping[str, Any]] | None = None,
    only: Collection[str] = (),
    limits: Sequence[str] = (),
    network: bool = True,
    progress: Progress | None = None,
    keep: Callable[[Certificate], None] | None = None,
) -> Certificate:
    """Run the checks on a source.

    Args:
        source: the environment.
        target: how to name it.
        settings: how thoroughly to look; the usual way if `None`.
        options: of the source, for the record.
        harder: the name and the options of a harder setting of the source.
        only: ids of the checks to run; all if empty.
        limits: options of the command that bound the environment's process.
        network: whether the environment could reach other machines.
        progress: called with what is done.
        keep: called after each check with the certificate so far: the rest could not be told.

    Raises:
        OptionError: if there is no check of a name.
    """
    for name in only:
        require_one_of("--only", name, list(CHECKS))
    settings = settings or CertifySettings()
    hard, harder_options = harder or (None, {})
    harder_bench = Bench(hard, target, settings, harder_options, limits) if hard else None
    bench = Bench(source, target, settings, options or {}, limits, harder_bench)
    if not source.rollouts and len(bench.scored) < 2:
        raise OptionError(f"{target or 'a source'} needs at least 4 Tasks to be certified")
    chosen = [check for check in in_order() if not only or check.name in only]
    found: dict[str, Finding] = {}

    def made() -> Certificate:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        each = tuple(_rested(one, found.get(one.name), bench) for one in chosen)
        kind, whole = settings.kind or bench.guessed, len(found) == len(chosen)
        return Certificate(
            *(SCHEMA_VERSION, target, source.facts.package, version("tokengym"), now),
            *(dict(options or {}), settings, network, each),
            *(dict(harder_options), source.facts.turns, kind, whole),
        )

    bench.expect(len(chosen))
    for number, check in enumerate(sorted(chosen, key=lambda check: check.last)):
        if progress is not None:
            progress(check.name, number, len(chosen))
        found[check.name] = check.find(bench)
        if keep is not None:
            keep(made())
    return made()


def _rested(check: Check, finding: Finding | None, bench: Bench) -> Finding:
    """Return a finding, or that a check that ended later shows it to be a mere consequence."""
    if finding is None:
        return check.unbegun(bench)
    cause = check.cause(bench) if finding.status is Status.FAILED else ""
    return replace(finding, status=Status.UNTOLD, found=cause + RESTS) if cause else finding


def certify_target(
    target: str,
    options: Mapping[str, Any],
    settings: CertifySettings,
    limits: Limits,
    *,
    harder: Mapping[str, Any] | None = None,
    **how: Any,
) -> Certificate:
    """Open a target in a process of its own and run the checks; see `certify`.

    A grader that hangs while it is opened is certified by its prompts alone.

    Raises:
        SourceFailure: if the target cannot be opened.
    """
    with ExitStack() as opened:

        def of(changed: Mapping[str, Any]) -> Source:
            taken = {**options, **changed}
            if is_recorded(target):
                return open_source(target, taken)
            try:
                return opened.enter_context(closing(Sandbox(target, taken, limits)))
            except SourceFailure as failure:
                if not (failure.hung and "prompts" in taken):
                    raise
                return Unopened(target, Path(taken["prompts"]), str(failure))

        source, hard = of({}), (of(harder), harder) if harder else None
        network = isinstance(source, Sandbox) and not source.isolated
        more = {"options": options, "limits": typed_words(limits), "network": network, **how}
        return certify(source, target, settings, harder=hard, **more)
