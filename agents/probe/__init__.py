"""Which gradient a trainer really follows, read off one update of a tiny model.

An update by gradient descent is `learning_rate * Σ c_k s_k`, with `s_k` the gradient of the
log-probability of token k in its context. The `s_k` are linearly independent, so least squares on
two checkpoints returns the weight `c_k` that the trainer gave to every token, without sampling.
"""
