"""The server of the studio, on 127.0.0.1."""
