"""A training that is as it should be: the marginal likelihood of a Gaussian process of gpytorch."""

import gpytorch
import torch

torch.manual_seed(35)
x = torch.linspace(0, 1, 30)
y = torch.sin(6 * x) + 0.1 * torch.randn(30)


class Process(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        self.covariance = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.covariance(x))


likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Process(x, y, likelihood)
model.train()
likelihood.train()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
for _ in range(12):
    optimizer.zero_grad()
    loss = -marginal(model(x), y)
    loss.backward()
    optimizer.step()
model.eval()
likelihood.eval()
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    likelihood(model(torch.linspace(0, 1, 7))).mean
