"""What one API key may ask for in a time, and at a time."""
