"""Language models' files."""
