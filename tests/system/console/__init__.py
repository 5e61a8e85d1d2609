"""The console in a real browser: one service and one browser for all tests of this package."""
