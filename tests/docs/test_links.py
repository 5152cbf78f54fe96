"""Links of the pages lead to files that exist."""

import re
from pathlib import Path

from tests.docs.pages import PAGES
from tests.every import every


@every("page", PAGES)
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing
