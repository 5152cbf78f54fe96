"""Estimators of the policy gradient against the exact gradient, over finite sets of replies.

    python -m benchmarks.estimators --markdown docs/estimators.md

`exact` computes moments, `schemes` asks the package for advantages, `policy` enumerates the toy
model's replies, `claims` tests what was published.
"""
