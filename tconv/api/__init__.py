"""What Python code calls: conversions, files opened lazily, pipelines. ``import tconv`` gives all of it."""
