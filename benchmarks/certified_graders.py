"""Graders of packages that were read by hand, for the table at the top of docs/certified.md.

    benchmarks/certified_graders.py:math_verify --option prompts=prompts/fractions.jsonl

Each takes a reply and a right answer and adds nothing to what its package does.
"""


def math_verify(reply: str, reference: str) -> float:
    from math_verify import parse, verify

    return float(verify(parse(f"${reference}$"), parse(reply)))


def hendrycks_math(reply: str, reference: str) -> float:
    from lm_eval.tasks.hendrycks_math.utils import (
        process_results,
    )

    doc = {"solution": rf"\boxed{{{reference}}}"}
    return float(process_results(doc, [reply])["exact_match"])


def edit_similarity(reply: str, reference: str) -> float:
    from autoevals.string import Levenshtein

    return float(Levenshtein()(output=reply, expected=reference).score)


def word_accuracy(reply: str, reference: str) -> float:
    from jiwer import wer

    return 1.0 - float(wer(reference, reply))


def rouge(reply: str, reference: str) -> float:
    from rouge_score.rouge_scorer import RougeScorer

    return float(RougeScorer(["rougeL"]).score(reference, reply)["rougeL"].fmeasure)


def chrf(reply: str, reference: str) -> float:
    from sacrebleu import sentence_chrf

    return float(sentence_chrf(reply, [reference]).score) / 100.0
