"""A user's own days: files, checked time series, and the windows that levels play."""

from tokengym.envs.energy.data.readers import (
    read,
    read_citylearn,
    read_citylearn_weather,
    read_plain,
    read_pymgrid,
)
from tokengym.envs.energy.data.time_series import TimeSeries

__all__ = [
    "TimeSeries",
    "read",
    "read_citylearn",
    "read_citylearn_weather",
    "read_plain",
    "read_pymgrid",
]
