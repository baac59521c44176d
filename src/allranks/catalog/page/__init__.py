"""The palette as an HTML page: every component as a card of the designer, with its form."""
