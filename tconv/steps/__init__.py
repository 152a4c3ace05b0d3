"""One module a step; steps never import formats."""
