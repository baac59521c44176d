"""Where images come from: one module for each source."""
