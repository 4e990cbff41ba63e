"""What computes a planned forward: a device through torch, or a cost model on a virtual clock."""
