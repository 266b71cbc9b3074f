"""Per-sample gradients by torch.func: one of the samples spoils its own, and a debugger sees all of them at once.

gradscope debug --line -c 'catch nan; continue; print' examples/torch_per_sample.py
"""

from __future__ import annotations

import torch
from torch.func import functional_call, grad, vmap


def main() -> None:
    """Compute the gradient of each sample's loss, and say whose is not finite."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    inputs = torch.randn(6, 3)
    targets = torch.randn(6, 2)

    def loss(params: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        predicted = functional_call(model, params, (x,))
        return torch.linalg.vector_norm(predicted - y).log()

    params = {name: value.detach() for name, value in model.named_parameters()}
    targets[3] = functional_call(model, params, (inputs[3],))  # what the model says already
    gradients = vmap(grad(loss), in_dims=(None, 0, 0))(params, inputs, targets)
    finite = torch.stack([value.flatten(1).isfinite().all(1) for value in gradients.values()]).all(0)
    print("samples without a finite gradient:", (~finite).nonzero().flatten().tolist())


if __name__ == "__main__":
    main()
