"""The server of the studio: it serves the front end, the runs of its folders as JSON, and their changes as events."""
