"""Files of a home's days, and of prices as ENTSO-E's platform writes them."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

BERLIN = ZoneInfo("Europe/Berlin")
HOUR = timedelta(hours=1)
Price = tuple[datetime, timedelta, float | str]
"""When a price begins, how long it is stated to be valid, and its cell."""


def price_file(
    path: Path, prices: Sequence[Price], sequence: str = "Sequence 1", *, marked: bool = True
) -> Path:
    """Prices per MWh; times that clocks repeat are marked."""

    def written(time: datetime) -> str:
        local = time.astimezone(BERLIN)
        repeated = local.replace(fold=1 - local.fold).utcoffset() != local.utcoffset()
        return f"{local:%d/%m/%Y %H:%M:%S}" + f" ({local.tzname()})" * (marked and repeated)

    lines = [
        f'"{written(t)} - {written(t + valid)}","BZN|DE-LU","{sequence}","{cell}"'
        for t, valid, cell in prices
    ]
    header = '"MTU (CET/CEST)","Area","Sequence","Day-ahead Price (EUR/MWh)"'
    path.write_text("\n".join([header, *lines]))
    return path


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
