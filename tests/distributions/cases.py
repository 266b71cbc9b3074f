"""Every distribution, with parameters and values it is asked about."""

from __future__ import annotations

from typing import Any

# By name: parameters, the function that makes the distribution of them, and values it is asked about.
CASES: dict[str, tuple[list[Any], Any, Any]] = {
    "Normal": ([[0.5, -1.0], [0.7, 2.0]], lambda d, loc, scale: d.Normal(loc, scale), [[0.1, 3.0], [-1.0, 0.4]]),
    "Laplace": ([[0.5, -1.0], [0.7, 2.0]], lambda d, loc, scale: d.Laplace(loc, scale), [[0.1, 3.0], [-1.0, 0.4]]),
    "Uniform": ([[0.5, -1.0], [2.0, 1.0]], lambda d, low, high: d.Uniform(low, high), [[0.6, 0.0], [1.5, -0.5]]),
    "Exponential": ([[0.5, 2.0]], lambda d, rate: d.Exponential(rate), [[0.6, 0.1], [1.5, 3.0]]),
    "Gamma": ([[0.5, 3.0], [2.0, 0.5]], lambda d, a, rate: d.Gamma(a, rate), [[0.6, 0.1], [1.5, 3.0]]),
    "Beta": ([[0.5, 3.0], [2.0, 0.5]], lambda d, a, b: d.Beta(a, b), [[0.6, 0.1], [0.5, 0.9]]),
    "Dirichlet": ([[[0.5, 3.0, 1.0], [2.0, 0.5, 2.5]]], lambda d, a: d.Dirichlet(a), [[0.2, 0.3, 0.5]]),
    "Bernoulli": ([[0.2, 0.7]], lambda d, p: d.Bernoulli(p), [[0.0, 1.0], [1.0, 1.0]]),
    "Bernoulli by logits": ([[-0.2, 0.7]], lambda d, x: d.Bernoulli(logits=x), [[0.0, 1.0], [1.0, 1.0]]),
    "Categorical": ([[[0.2, 0.7, 0.4], [1.0, 2.0, 0.5]]], lambda d, p: d.Categorical(p), [[0, 2], [1, 1]]),
    "Categorical by logits": (
        [[[0.2, -0.7, 0.4], [1.0, 2.0, -0.5]]],
        lambda d, x: d.Categorical(logits=x),
        [[0, 2], [1, 1]],
    ),
    "OneHotCategorical": (
        [[[0.2, 0.7, 0.4], [1.0, 2.0, 0.5]]],
        lambda d, p: d.OneHotCategorical(p),
        [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]],
    ),
    "Multinomial": (
        [[[0.2, 0.7, 0.4], [1.0, 2.0, 0.5]]],
        lambda d, p: d.Multinomial(4, p),
        [[0.0, 3.0, 1.0], [2.0, 1.0, 1.0]],
    ),
    **{
        f"MultivariateNormal by {form}": (
            [[[0.5, -1.0], [0.2, 0.1]], [[1.5, 0.3], [-0.2, 0.8]]],
            lambda d, loc, x, form=form: d.MultivariateNormal(
                loc, **{form: x.tril() if form == "scale_tril" else x @ x.mT}
            ),
            [[0.1, 3.0], [-1.0, 0.4]],
        )
        for form in ("covariance_matrix", "precision_matrix", "scale_tril")
    },
    "Poisson": ([[0.5, 3.0]], lambda d, rate: d.Poisson(rate), [[0.0, 2.0], [1.0, 4.0]]),
    "Independent": (
        [[0.5, -1.0], [0.7, 2.0]],
        lambda d, loc, scale: d.Independent(d.Normal(loc, scale), 1),
        [[0.1, 3.0], [-1.0, 0.4]],
    ),
}
TWO = [[0.5, -1.0], [0.7, 2.0]]
POSITIVE = [[0.6, 0.1], [1.5, 3.0]]
CASES |= {
    "Cauchy": (TWO, lambda d, loc, scale: d.Cauchy(loc, scale), [[0.1, 3.0], [-1.0, 0.4]]),
    "StudentT": (
        [[0.5, 1.5, 3.0], [0.2, 0.1, -0.3], [0.7, 2.0, 1.0]],
        lambda d, df, loc, scale: d.StudentT(df, loc, scale),
        [[0.1, 3.0, -1.0]],
    ),
    "Chi2": ([[0.5, 3.0]], lambda d, df: d.Chi2(df), POSITIVE),
    "Gumbel": (TWO, lambda d, loc, scale: d.Gumbel(loc, scale), [[0.1, 3.0], [-1.0, 0.4]]),
    "HalfNormal": ([[0.7, 2.0]], lambda d, scale: d.HalfNormal(scale), POSITIVE),
    "HalfCauchy": ([[0.7, 2.0]], lambda d, scale: d.HalfCauchy(scale), POSITIVE),
    "LogNormal": (TWO, lambda d, loc, scale: d.LogNormal(loc, scale), POSITIVE),
    "LogisticNormal": (TWO, lambda d, loc, scale: d.LogisticNormal(loc, scale), [[0.2, 0.3, 0.5]]),
    "Weibull": ([[0.7, 2.0], [1.5, 3.0]], lambda d, scale, k: d.Weibull(scale, k), POSITIVE),
    "Pareto": ([[0.7, 2.0], [2.5, 3.0]], lambda d, scale, a: d.Pareto(scale, a), [[0.8, 2.1], [1.5, 3.0]]),
    "Binomial": ([[0.2, 0.7]], lambda d, p: d.Binomial(4, p), [[0.0, 3.0], [4.0, 1.0]]),
    "Binomial by logits": ([[-0.2, 0.7]], lambda d, x: d.Binomial(4, logits=x), [[0.0, 3.0], [4.0, 1.0]]),
    "NegativeBinomial": (
        [[1.5, 3.0], [0.2, 0.7]],
        lambda d, n, p: d.NegativeBinomial(n, p),
        [[0.0, 3.0], [4.0, 1.0]],
    ),
    "Geometric": ([[0.2, 0.7]], lambda d, p: d.Geometric(p), [[0.0, 3.0], [4.0, 1.0]]),
    "RelaxedBernoulli": (
        [[0.2, 0.7]],
        lambda d, p: d.RelaxedBernoulli(p.detach()[0] * 0 + 0.8, p),
        [[0.1, 0.4], [0.9, 0.6]],
    ),
    "RelaxedOneHotCategorical": (
        [[[0.2, 0.7, 0.4], [1.0, 2.0, 0.5]]],
        lambda d, p: d.RelaxedOneHotCategorical(p.detach()[0, 0] * 0 + 0.8, p),
        [[0.2, 0.3, 0.5], [0.6, 0.1, 0.3]],
    ),
    "MixtureSameFamily": (
        [[[0.2, 0.8], [0.5, 0.5]], [[0.5, -1.0], [0.3, 2.0]], [[0.7, 2.0], [1.0, 0.5]]],
        lambda d, p, loc, scale: d.MixtureSameFamily(d.Categorical(p), d.Normal(loc, scale)),
        [[0.1, 3.0], [-1.0, 0.4]],
    ),
    "a mixture of vectors": (
        [[0.2, 0.8], [[0.5, -1.0], [0.3, 2.0]], [[0.7, 2.0], [1.0, 0.5]]],
        lambda d, p, loc, scale: d.MixtureSameFamily(d.Categorical(p), d.Independent(d.Normal(loc, scale), 1)),
        [[0.1, 3.0], [-1.0, 0.4]],
    ),
    "TransformedDistribution": (
        TWO,
        lambda d, loc, scale: d.TransformedDistribution(
            d.Normal(loc, scale), [d.TanhTransform(), d.AffineTransform(0.5, -2.0)]
        ),
        [[0.1, 2.0], [-1.0, 0.4]],
    ),
}
MATRICES = [[[1.5, 0.3], [0.3, 0.8]], [[0.7, -0.2], [-0.2, 1.1]]]
CASES |= {
    "ContinuousBernoulli": ([[0.2, 0.9]], lambda d, p: d.ContinuousBernoulli(p), [[0.1, 0.4], [0.9, 0.6]]),
    "ContinuousBernoulli by logits": (
        [[-0.2, 3.0]],
        lambda d, x: d.ContinuousBernoulli(logits=x),
        [[0.1, 0.4], [0.9, 0.6]],
    ),
    "FisherSnedecor": ([[3.5, 8.0], [11.0, 15.0]], lambda d, a, b: d.FisherSnedecor(a, b), POSITIVE),
    "GeneralizedPareto": (
        [[0.5, -1.0, 0.0], [0.7, 2.0, 1.5], [0.2, -0.4, 0.1]],
        lambda d, loc, scale, shape: d.GeneralizedPareto(loc, scale, shape),
        [[0.6, 3.0, 0.5], [1.5, -0.9, 2.0]],
    ),
    "InverseGamma": ([[2.5, 9.0], [2.0, 0.5]], lambda d, a, rate: d.InverseGamma(a, rate), POSITIVE),
    "Kumaraswamy": ([[1.5, 3.0], [2.0, 4.0]], lambda d, a, b: d.Kumaraswamy(a, b), [[0.6, 0.1], [0.5, 0.9]]),
    "LKJCholesky": (
        [[0.5, 2.0]],
        lambda d, a: d.LKJCholesky(3, a),
        [[[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, -0.6, 0.8]]],
    ),
    "LowRankMultivariateNormal": (
        [[[0.5, -1.0, 0.0], [0.2, 0.1, 0.3]], [[1.5], [-0.2], [0.4]], [0.7, 2.0, 1.0]],
        lambda d, loc, factor, diagonal: d.LowRankMultivariateNormal(loc, factor, diagonal),
        [[0.1, 3.0, 1.0], [-1.0, 0.4, 0.2]],
    ),
    "OneHotCategoricalStraightThrough": (
        [[[0.2, 0.7, 0.4], [1.0, 2.0, 0.5]]],
        lambda d, p: d.OneHotCategoricalStraightThrough(p),
        [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]],
    ),
    **{
        f"Wishart by {form}": (
            [[4.5, 6.0], [[1.5, 0.3], [-0.2, 0.8]]],
            lambda d, df, x, form=form: d.Wishart(df, **{form: x.tril() if form == "scale_tril" else x @ x.mT}),
            MATRICES,
        )
        for form in ("covariance_matrix", "precision_matrix", "scale_tril")
    },
}
