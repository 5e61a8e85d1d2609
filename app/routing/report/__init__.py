"""The report of a router: volume, quality, calibration, drift and agreement of shadows."""
