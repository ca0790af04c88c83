"""Functions on tensors: attention, its activations, and the backends that compute it."""
