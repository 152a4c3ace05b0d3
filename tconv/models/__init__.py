"""Whole models made int8 by the quantizers of their own frameworks, which tconv brings the data and checks."""
