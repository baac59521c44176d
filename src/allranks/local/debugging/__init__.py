"""Debug ranks of a step: debugpy or pdb in the rank, and a relay into its instance."""
