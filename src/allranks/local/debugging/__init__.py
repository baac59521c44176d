"""Debug ranks of a step: debugpy or pdb in the rank, a relay into its instance, and time-outs that wait."""
