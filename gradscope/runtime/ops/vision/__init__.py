"""Operators of images and volumes.

- :mod:`~.interpolate`: interpolation to another size
- :mod:`~.separable_resampling`: the linear maps along one dimension that interpolation is made of
- :mod:`~.grid_sample`: sampling at any place, affine grids
- :mod:`~.pixel_shuffle_and_unfold`: pixels between space and channels, windows as columns
- :mod:`~.padding`: reflected, replicated and circular padding
"""
