"""Whether a Tinker server does what the SDK promises: a list of trials, tried one after another.

`tokengym conform` tries all of them; a training run on a server that is not ours tries those that
it needs. `answers.py` bounds every wait, `trials.py` is the registry, `gaps.py` compares what a
server samples with what it trains.
"""
