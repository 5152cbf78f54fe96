"""The small policy that comes with the package, and the script that makes it.

It answers in each world's form but decides badly, so that a laptop can watch it learn.
"""

from pathlib import Path

MODEL_DIR = Path(__file__).parent / "model"
"""A Hugging Face model directory, tokenizer included."""
