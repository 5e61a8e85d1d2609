"""What the pages tell their readers to do: one service for all tests of this package."""
