"""Checks of `tokengym certify` as graders of OpenEnv's validation: its entry points name them.

`GraderRegistry.load_entry_points` finds `semantic_oracle_max` for the check `semantic.oracle_max`,
and so on, for every check whose id OpenEnv reserves and for which it has no grader of its own.
They apply to packages whose manifest has the tag `tokengym`, as those that `tokengym serve-env`
writes do: whoever has this package installed validates all others as before.
"""

import time
from typing import Any

from openenv.validation import CheckResult, CheckStatus, Level, NormalizedManifest, Subject

from tokengym.agents.certify.bench import CertifySettings
from tokengym.agents.certify.certificate import certify_target
from tokengym.agents.certify.finding import Status
from tokengym.agents.certify.sandbox import Limits
from tokengym.envs.core.errors import TokengymError

_SETTINGS = CertifySettings(tasks=6, strategies=50, replies=1000, drawn=50)
TAG = "tokengym"
"""Type tag of a manifest by which a package asks for these graders."""
_STATUSES = {Status.PASSED: CheckStatus.PASS, Status.FAILED: CheckStatus.FAIL}


class CheckGrader:
    """One check; what is not applicable or could not be told is skipped.

    The environment is the one that OpenEnv has started, or else runs from the package's folder in
    a process of its own.

    Args:
        check: id of the check.

    Attributes:
        check_id: the same.
        level: that of the id's first part.
        requires_capabilities: none.
        requires_provider: none.
        depends_on: nothing.
    """

    requires_capabilities: frozenset[str] = frozenset()
    requires_provider: frozenset[Any] = frozenset()
    depends_on: tuple[str, ...] = ()

    def __init__(self, check: str) -> None:
        self.check_id = check
        self.level = Level[check.partition(".")[0].upper()]

    def applies_to(self, manifest: NormalizedManifest) -> bool:
        """Apply to packages that ask for it by the tag."""
        return TAG in manifest.types.tags

    def run(self, subject: Subject) -> CheckResult:
        """Run the check on a package."""
        begun = time.monotonic()
        running = subject.running
        where = str(subject.root) if running is None else running.base_url
        options = {"declared": list(subject.manifest.reward.range)}
        limits = Limits(network=running is not None)
        try:
            only = [self.check_id]
            made = certify_target(f"openenv:{where}", options, _SETTINGS, limits, only=only)
            (found,) = made.findings
            status = _STATUSES.get(found.status, CheckStatus.SKIP)
            lines = [found.found, found.example, found.reproduce]
            measured = {} if found.estimate is None else found.estimate._asdict()
        except TokengymError as error:
            status, lines, measured = CheckStatus.ERROR, [str(error)], {}
        return CheckResult(
            check_id=self.check_id,
            status=status,
            measured=measured,
            evidence=[line for line in lines if line],
            duration_s=time.monotonic() - begun,
        )


def __getattr__(name: str) -> CheckGrader:
    """Return the grader of a check whose id has an underscore in place of its point."""
    kind, _, rest = name.partition("_")
    if kind.upper() not in Level.__members__:
        raise AttributeError(name)
    return CheckGrader(f"{kind}.{rest}")
