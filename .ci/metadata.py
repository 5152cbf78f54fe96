"""Package metadata that depends on where a release is built: the project's address.

The release workflow puts the repository's address into `TOKENGYM_REPOSITORY`. With it, the package
gets project URLs, and relative links in the README become links to the released tag, because a
package index has no files for them. Without it, the README stays as it is.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

VARIABLE = "TOKENGYM_REPOSITORY"
_RELATIVE = re.compile(r"(!?)\[((?:!\[[^\]]*\]\([^)]*\)|[^\]\[])*)\]\((?!https?://|#)([^)\s]+)\)")


class ProjectAddress(MetadataHookInterface):
    """Fill in `readme` and `urls`, unless a source distribution already has them."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the fields to the project's `metadata`; raises ValueError for a malformed address."""
        dynamic = metadata.get("dynamic", [])
        address, tag = repository(), f"v{metadata['version']}"
        if "readme" in dynamic:
            text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
            text = absolute(text, address, tag) if address else text
            metadata["readme"] = {"content-type": "text/markdown", "text": text}
        if "urls" in dynamic:
            metadata["urls"] = urls(address, tag) if address else {}


def repository() -> str:
    """Return the address of the repository, without a slash at its end; empty if there is none."""
    address = os.environ.get(VARIABLE, "").rstrip("/")
    if address and not re.fullmatch(r"https?://[^\s/]+/\S+", address):
        raise ValueError(f"{VARIABLE} must be like https://host/owner/name, got {address!r}")
    return address


def urls(address: str, tag: str) -> dict[str, str]:
    """Return the project's URLs: those of documents lead to the released tag."""
    return {
        "Homepage": address,
        "Documentation": f"{address}/blob/{tag}/README.md#more",
        "Repository": address,
        "Issues": f"{address}/issues",
        "Changelog": f"{address}/blob/{tag}/CHANGELOG.md",
    }


def absolute(text: str, address: str, tag: str) -> str:
    """Return Markdown whose relative links and pictures lead to the files of a tag."""

    def lead(match: re.Match[str]) -> str:
        mark, label, target = match.groups()
        view = "raw" if mark else "blob"
        return f"{mark}[{_RELATIVE.sub(lead, label)}]({address}/{view}/{tag}/{target})"

    return _RELATIVE.sub(lead, text)
