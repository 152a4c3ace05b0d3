"""Devices other than the CPU, through torch: the only room that imports it, and only when one is asked for."""
