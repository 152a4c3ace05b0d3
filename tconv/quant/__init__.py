"""Quantization: which numbers there are, how values are put onto them and back, and how a scale is found."""
