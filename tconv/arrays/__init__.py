"""Arrays in memory: where NumPy, PyTorch, TensorFlow and JAX differ. A framework is imported when its tensor comes."""
