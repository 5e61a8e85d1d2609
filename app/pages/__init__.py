"""Self-contained HTML pages with inline styles and SVG charts, and without scripts."""
