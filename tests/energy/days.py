"""Files of a home's days for the energy tests."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path


def days_file(
    path: Path,
    days: int = 20,
    minutes: int = 60,
    *,
    price: Callable[[float], float] = lambda hour: 0.5 if 16 <= hour < 20 else 0.2,
    resale: Callable[[float], float] = lambda hour: 0.05,
    begin: datetime = datetime(2026, 1, 1),
) -> Path:
    """Write a plain file of a home's days; `price` and `resale` are by hour of the day."""
    lines = ["time,load_kw,pv_kw,price_import,price_export,grid_up"]
    for at in range(days * 1440 // minutes):
        time = begin + timedelta(minutes=at * minutes)
        hour = time.hour + time.minute / 60
        sun = max(0.0, 3.0 - 0.1 * (hour - 12.5) ** 2)
        load = 0.5 + at % 7 / 5
        cells = (f"{load:.2f}", f"{sun:.2f}", f"{price(hour):g}", f"{resale(hour):g}", "1")
        lines.append(",".join([time.isoformat(), *cells]))
    path.write_text("\n".join(lines) + "\n")
    return path
