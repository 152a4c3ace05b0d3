"""What is odd about images before they are converted, what becomes of it, and which option changes that."""
