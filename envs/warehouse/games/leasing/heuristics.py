"""Rules of thumb for leasing: each quotes a price."""

from collections.abc import Callable
from functools import lru_cache

from tokengym.envs.warehouse.games.leasing.rules import CustomerKind, LeaseModel, State

_HALVINGS = 16

Quote = Callable[[CustomerKind], int]
"""A rule that sees nothing but the kind of the customer."""


def lowest(kind: CustomerKind) -> int:
    """Quote what every customer of the kind pays."""
    return kind.low


@lru_cache(maxsize=4096)
def myopic(kind: CustomerKind) -> int:
    """Quote what earns most from this customer, as if bays were never short."""
    return max(range(kind.low, kind.high + 1), key=lambda price: price * kind.signs(price))


def bid_price(model: LeaseModel, month: int, state: State, customer: CustomerKind) -> int:
    """Quote what earns most above the price of bays at which the demand expected just fits.

    A bay has one price a month to the end, as if every month brought its mean demand; it is
    computed anew each month. 0 turns the customer away.

    Source: Gallego and van Ryzin, Management Science 40 (1994), for the fluid model; Talluri and
    van Ryzin, The Theory and Practice of Revenue Management (2004), for bid prices.
    """
    left = range(model.months - month)
    free = sum(model.bays - sum(state[ahead:]) for ahead in left)
    asking = [[(1.0, customer)]]
    for chances in model.chances[month + 1 :]:
        asking.append(list(zip(chances, model.kinds, strict=True)))

    def quote(kind: CustomerKind, bid: float, months: int) -> int:
        def gain(price: int) -> float:
            return kind.signs(price) * (price * kind.months - bid * min(kind.months, months))

        return max(range(kind.low, kind.high + 2), key=gain)

    low, high = 0.0, float(max(kind.high * kind.months for kind in model.kinds))
    for _ in range(_HALVINGS):
        bid = (low + high) / 2
        used = sum(
            share * kind.signs(quote(kind, bid, months)) * kind.bays * min(kind.months, months)
            for months, kinds in zip(reversed([n + 1 for n in left]), asking, strict=True)
            for share, kind in kinds
        )
        low, high = (bid, high) if used > free else (low, bid)
    price = quote(customer, high, len(left))
    return price if price <= customer.high else 0
