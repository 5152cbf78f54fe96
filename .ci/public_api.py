"""Show how the public API differs from that of an earlier commit, where calls written for it break.

    .venv/bin/python .ci/public_api.py          work in progress against the last commit, or that
                                                against the one before it
    .venv/bin/python .ci/public_api.py main     against another commit

Public is what `tokengym`, `tokengym.agents`, `envs`, `rewards` and `testing` list in `__all__`. It
informs and never fails; docs/versions.md says what may break. It belongs into CHANGELOG.md.
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

import griffe
from unchecked import note

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("agents", "envs", "rewards")


def main() -> None:
    """Compare what is here with the commit that the argument names."""
    changed = git("diff", "--quiet", "HEAD", "--", *FOLDERS, "src").returncode
    earlier = sys.argv[1] if len(sys.argv) > 1 else "HEAD" if changed else "HEAD~1"
    archive = git("archive", earlier, *FOLDERS, "src")
    if archive.returncode:
        note(f"the public API against {earlier}: {archive.stderr.decode().strip()}")
        return
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
            files.extractall(folder, filter="data")
        broken = breakages(public(Path(folder)), public(ROOT))
    print(f"public API against {earlier}: {len(broken)} incompatible changes", *broken, sep="\n  ")


def breakages(old: griffe.Object | griffe.Alias, new: griffe.Object | griffe.Alias) -> list[str]:
    """Return what code written for an old package can no longer do, one line each."""
    pairs = ((old, new), (old["testing"], new["testing"]))
    changes = [change for pair in pairs for change in griffe.find_breaking_changes(*pair)]
    style = griffe.ExplanationStyle.MARKDOWN
    return sorted({f"{change.obj.path} {change.explain(style)}" for change in changes})


def public(root: Path) -> griffe.Object | griffe.Alias:
    """Read the package of a checkout without importing it, laid out as it is installed."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "tokengym"
        shutil.copytree(root / "src" / "tokengym", package)
        for name in FOLDERS:
            shutil.copytree(root / name, package / name, ignore=shutil.ignore_patterns("*.pyc"))
        return griffe.load(
            "tokengym",
            search_paths=[folder],
            try_relative_path=False,
            allow_inspection=False,
            resolve_aliases=True,
            resolve_external=False,
        )


def git(*words: str) -> subprocess.CompletedProcess[bytes]:
    """Run git in the project's folder."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True)


if __name__ == "__main__":
    main()
