"""A user's own days: files, checked time series, and the windows that levels play."""

from tokengym.envs.energy.data.readers import read, recognises
from tokengym.envs.energy.data.time_series import TimeSeries, resample_to

__all__ = ["TimeSeries", "read", "recognises", "resample_to"]
