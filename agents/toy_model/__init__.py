"""The small language model that comes with the package.

It replies in each world's form but decides badly, so that a laptop is enough to watch it learn.
"""

from pathlib import Path

TOY_MODEL = "tokengym-start"
"""Its name."""
MODEL_DIR = Path(__file__).parent / "model"
"""A Hugging Face model directory, tokenizer included."""
