"""Linear algebra.

- :mod:`~.matmul`: products of matrices and vectors, ``linear``
- :mod:`~.matrix_products`: ``multi_dot``, ``cross``, ``vecdot``, ``vander``
- :mod:`~.einsum`: ``einsum`` and ``tensordot``
- :mod:`~.determinant_and_inverse`: determinants, inverses, ``solve``
- :mod:`~.lu`: LU factors and what is solved with them
- :mod:`~.ldl`: LDL factors of symmetric matrices
- :mod:`~.qr`: QR factors, Householder reflections
- :mod:`~.cholesky_and_triangular`: Cholesky factors, triangular equations
- :mod:`~.svd_and_eigen`: singular values, eigenvalues and their vectors
- :mod:`~.svd_lowrank`: decompositions of nearly low rank
- :mod:`~.pinv_and_lstsq`: pseudoinverses, least squares, ranks
- :mod:`~.matrix_norms`: norms of vectors and matrices
- :mod:`~.matrix_exponential`: ``matrix_exp``
- :mod:`~.matrix_checks`: what functions of matrices ask of their arguments
- :mod:`~.older_names`: functions of matrices from before ``torch.linalg``
- :mod:`~.lapack`: BLAS and LAPACK, one matrix of a batch at a time
"""
