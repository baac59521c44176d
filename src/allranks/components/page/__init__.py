"""The palette as a page: every component as a card of the designer, with its form."""
