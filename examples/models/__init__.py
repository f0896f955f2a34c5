"""Well-known architectures over weft.nn, an architecture a file; ../README.md lists them."""
