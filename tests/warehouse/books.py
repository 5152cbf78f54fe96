"""Small random shifts for tests."""

from hypothesis import strategies as st

from tokengym.envs.warehouse.games.picking.orders import Order, PickingSite
from tokengym.envs.warehouse.layout import AisleLayout

LAYOUT = AisleLayout(3, 4)
SLOTS = [cell.name for cell in LAYOUT.slots()]


def sites() -> st.SearchStrategy[PickingSite]:
    return st.builds(
        PickingSite,
        layout=st.just(LAYOUT),
        capacity=st.integers(4, 6),
        decay=st.sampled_from([5.0, 20.0]),
        walk_cost=st.sampled_from([0.0, 0.05, 0.5]),
    )


@st.composite
def books(draw: st.DrawFn, most: int = 3, release: int = 15) -> list[Order]:
    orders = []
    for number in range(1, draw(st.integers(1, most)) + 1):
        slots = draw(st.lists(st.sampled_from(SLOTS), min_size=1, max_size=2, unique=True))
        lines = tuple((slot, draw(st.integers(1, 2))) for slot in slots)
        orders.append(
            Order(
                id=f"O{number}",
                value=float(draw(st.integers(1, 12))),
                due=draw(st.integers(0, 40)),
                release=draw(st.integers(0, release)),
                lines=lines,
                units=sum(units for _, units in lines),
            )
        )
    return orders
