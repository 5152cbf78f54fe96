"""The packages here are installed and tested by other tests, not collected."""

collect_ignore_glob = ["*"]
