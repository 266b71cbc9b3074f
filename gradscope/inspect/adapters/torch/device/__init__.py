"""Looks at tensors on a GPU that are taken there, so that the program does not wait for them.

- :mod:`~.device_statistics`: the statistics of gradients
- :mod:`~.device_kernel`: the kernel that counts them, in Triton
- :mod:`~.device_fingerprints`: checksums of saved tensors
"""
