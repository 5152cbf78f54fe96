"""A user's own days: files, checked time series, and the windows that levels play."""

from tokengym.envs.energy.data.readers import read
from tokengym.envs.energy.data.report import Report
from tokengym.envs.energy.data.time_series import TimeSeries, resample_to

__all__ = ["Report", "TimeSeries", "read", "resample_to"]
