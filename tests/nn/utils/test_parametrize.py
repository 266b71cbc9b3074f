"""Parametrizations: keys, values, gradients and refusals as PyTorch's."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.nn.utils import parametrizations, parametrize
from tests.side_by_side import same_complaint


def kinds(lib: Any) -> dict[str, Any]:
    """Return modules that parametrize, of either library."""

    class Double(lib.nn.Module):
        def forward(self, x):
            return x * 2

    class Sum(lib.nn.Module):
        def forward(self, a, b):
            return a + b

        def right_inverse(self, x):
            return x / 4, x * 3 / 4

    class Exp(lib.nn.Module):
        def forward(self, x):
            return x.exp()

        def right_inverse(self, x):
            return x.log()

    def made(name: str, forward: Any, inverse: Any = None) -> Any:
        methods = {"forward": lambda self, x: forward(x)}
        if inverse is not None:
            methods["right_inverse"] = lambda self, x: inverse(x)
        return type(name, (lib.nn.Module,), methods)

    return {
        "Double": Double,
        "Sum": Sum,
        "Exp": Exp,
        "Shape": made("Shape", lambda x: x[:1]),
        "Dtype": made("Dtype", lambda x: x.double()),
        "Number": made("Number", lambda x: 3),
        "InverseNumber": made("InverseNumber", lambda x: x, lambda x: 3),
        "InverseDtype": made("InverseDtype", lambda x: x, lambda x: x.double()),
    }


def layer(lib: Any) -> Any:
    made = lib.nn.Linear(3, 2)
    with lib.no_grad():
        made.weight.copy_(lib.arange(2.0, 8.0).reshape(2, 3))
        made.bias.copy_(lib.tensor([0.5, -0.5]))
    return made


def registered(lib: Any, *names: str, **options: Any) -> Any:
    module = layer(lib)
    for name in names:
        lib.nn.utils.parametrize.register_parametrization(module, "weight", kinds(lib)[name](), **options)
    return module


def state(module: Any) -> dict[str, Any]:
    return {
        name: numpy.asarray(tensor.detach().numpy()).round(5).tolist() for name, tensor in module.state_dict().items()
    }


@pytest.mark.torch
@pytest.mark.parametrize(
    "names", [("Double",), ("Sum",), ("Exp",), ("Exp", "Exp"), ("Sum", "Double"), ("Double", "Double")]
)
def test_state_values_and_gradients(torch: Any, names: tuple[str, ...]) -> None:
    found = []
    for lib in (gs, torch):
        module = registered(lib, *names)
        module(lib.ones(1, 3)).sum().backward()
        values = {**module.state_dict(), "weight": module.weight.detach()}
        values.update((f"gradient of {name}", p.grad) for name, p in module.named_parameters())
        found.append({name: value.numpy() for name, value in values.items()})
    assert list(found[0]) == list(found[1])
    for name, value in found[0].items():
        numpy.testing.assert_allclose(value, found[1][name], rtol=1e-5, err_msg=name)


@pytest.mark.torch
def test_buffers_reprs_and_questions(torch: Any) -> None:
    found = []
    for lib in (gs, torch):
        P = lib.nn.utils.parametrize
        module = registered(lib, "Double")
        norm = lib.nn.BatchNorm1d(2)
        P.register_parametrization(norm, "running_var", kinds(lib)["Exp"]())
        found.append(
            (
                repr(module),
                state(norm),
                [P.is_parametrized(module), P.is_parametrized(module, "bias"), P.is_parametrized(layer(lib))],
                P.type_before_parametrizations(module).__name__,
                type(module).__name__,
            )
        )
    assert found[0] == found[1]


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: lib.nn.utils.parametrize.register_parametrization(layer(lib), "nothing", kinds(lib)["Double"]()),
        *(
            lambda lib, names=names: registered(lib, *names)
            for names in [
                ("Shape",), ("Dtype",), ("Number",), ("InverseNumber",), ("InverseDtype",),
                ("Double", "Shape"), ("Double", "Dtype"), ("Double", "Number"), ("Double", "InverseNumber"),
                ("Double", "InverseDtype"),
            ]
        ),
        lambda lib: setattr(registered(lib, "Double"), "weight", lib.ones(2, 3)),
        lambda lib: setattr(registered(lib, "Exp"), "weight", lib.nn.Parameter(lib.ones(2, 3))),
        lambda lib: lib.nn.utils.parametrize.remove_parametrizations(layer(lib), "weight"),
        lambda lib: lib.nn.utils.parametrize.remove_parametrizations(registered(lib, "Sum"), "weight", False),
        lambda lib: lib.nn.utils.parametrizations.spectral_norm(layer(lib), n_power_iterations=0),
        lambda lib: lib.nn.utils.parametrizations.spectral_norm(layer(lib), "nothing"),
        lambda lib: lib.nn.utils.parametrizations.spectral_norm(layer(lib), dim=2),
        lambda lib: lib.nn.utils.parametrizations.weight_norm(layer(lib), "nothing"),
    ],
)  # fmt: skip
def test_refusals(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)


def test_a_parametrized_module_is_not_pickled() -> None:
    with pytest.raises(
        RuntimeError, match=r"^Serialization of parametrized modules is only supported through state_di"
    ):
        pickle.dumps(registered(gs, "Double"))


def test_unsafe_may_change_the_shape() -> None:
    assert registered(gs, "Shape", unsafe=True).weight.shape == (1, 3)


def test_assigning_sets_the_originals() -> None:
    module = registered(gs, "Sum")
    before = module.parametrizations.weight.original0
    module.weight = gs.full((2, 3), 8.0)
    assert module.parametrizations.weight.original0 is before
    assert before.tolist() == [[2.0] * 3] * 2
    assert module.weight.tolist() == [[8.0] * 3] * 2


def test_the_parameter_stays_the_optimizers() -> None:
    module = layer(gs)
    weight = module.weight
    optimizer = gs.optim.SGD(module.parameters(), lr=1.0)
    parametrize.register_parametrization(module, "weight", kinds(gs)["Exp"]())
    assert module.parametrizations.weight.original is weight
    module(gs.ones(1, 3)).sum().backward()
    optimizer.step()
    assert module.weight[0, 0].item() == pytest.approx(2 * numpy.exp(-2.0))  # exp(log(2) - its gradient, 2)
    parametrize.remove_parametrizations(module, "weight")
    assert module.weight is weight
    assert weight[0, 0].item() == pytest.approx(2 * numpy.exp(-2.0))


@pytest.mark.parametrize("left", [True, False])
def test_removed(left: bool) -> None:
    module = registered(gs, "Double")
    parametrize.remove_parametrizations(module, "weight", leave_parametrized=left)
    assert type(module) is gs.nn.Linear
    assert list(module.state_dict()) == ["bias", "weight"]
    assert module.weight[0].tolist() == ([4.0, 6.0, 8.0] if left else [2.0, 3.0, 4.0])


def test_one_of_two_is_removed() -> None:
    module = registered(gs, "Double")
    parametrize.register_parametrization(module, "bias", kinds(gs)["Double"]())
    parametrize.remove_parametrizations(module, "weight")
    assert parametrize.is_parametrized(module, "bias")
    assert module.bias.tolist() == [1.0, -1.0]
    assert type(module.weight) is gs.nn.Parameter


def test_cached() -> None:
    module = registered(gs, "Double")
    assert module.weight is not module.weight
    with parametrize.cached():
        first = module.weight
        with parametrize.cached():
            assert module.weight is first
        assert module.weight is first
    assert module.weight is not first


def test_a_copy_is_a_module_of_its_own() -> None:
    module = registered(gs, "Exp")
    other = copy.deepcopy(module)
    other.weight = gs.ones(2, 3)
    assert module.weight[0, 1].item() == pytest.approx(3.0)
    parametrize.remove_parametrizations(other, "weight")
    assert other.weight.tolist() == [[1.0] * 3] * 2
    assert parametrize.is_parametrized(module, "weight")
    assert module.weight[0, 1].item() == pytest.approx(3.0)


@pytest.mark.torch
def test_a_transfer_shares_the_originals_so_that_an_optimizer_goes_on_training_them(torch: Any) -> None:
    for lib in (gs, torch):
        source, target = registered(lib, "Exp"), lib.nn.Linear(3, 2)
        lib.nn.utils.parametrize.transfer_parametrizations_and_params(source, target)
        assert lib.equal(source.weight, target.weight)
        assert source.parametrizations.weight.original is target.parametrizations.weight.original
        source = lib.nn.utils.parametrizations.weight_norm(lib.nn.Linear(3, 2))
        target = lib.nn.utils.parametrize.transfer_parametrizations_and_params(source, lib.nn.Linear(3, 2))
        assert all(
            getattr(source.parametrizations.weight, name) is getattr(target.parametrizations.weight, name)
            for name in ("original0", "original1")
        )


# --- weight norm, spectral norm ---------------------------------------------------------------------------------------


def convolution(lib: Any) -> Any:
    made = lib.nn.ConvTranspose1d(2, 3, 2)
    with lib.no_grad():
        made.weight.copy_(lib.arange(1.0, 13.0).reshape(2, 3, 2).cos())
        made.bias.zero_()
    return made


@pytest.mark.torch
@pytest.mark.parametrize("dim", [0, 1, 2, -1, None])
@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning")
def test_weight_norm(torch: Any, dim: int | None) -> None:
    for old in (False, True):
        found = []
        for lib in (gs, torch):
            module = convolution(lib)
            room = lib.nn.utils if old else lib.nn.utils.parametrizations
            room.weight_norm(module, dim=dim)
            output = module(lib.ones(1, 2, 3))
            (output * output).sum().backward()
            gradients = {
                name: p.grad.numpy().round(2).tolist() for name, p in module.named_parameters() if name != "bias"
            }
            with lib.no_grad():
                next(p for name, p in module.named_parameters() if name.endswith(("_g", "original0"))).mul_(2)
            module(lib.ones(1, 2, 3))
            weight = module.weight.detach().numpy().round(4).tolist()
            if old:
                lib.nn.utils.remove_weight_norm(module)
            else:
                lib.nn.utils.parametrize.remove_parametrizations(module, "weight")
            found.append((gradients.keys(), weight, sorted(module.state_dict())))
            if lib is gs:
                mine = gradients
        assert found[0] == found[1]
        for name, gradient in gradients.items():
            numpy.testing.assert_allclose(mine[name], gradient, rtol=1e-4, atol=1e-4)


def share_vectors(lib: Any, module: Any, prefix: str) -> None:
    buffers = dict(module.named_buffers())
    with lib.no_grad():
        for name, buffer in buffers.items():
            assert name.startswith(prefix)
            buffer.copy_(lib.arange(1.0, buffer.numel() + 1) / 10)


@pytest.mark.torch
@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("dim", [None, 0, 2])
def test_spectral_norm(torch: Any, old: bool, dim: int | None) -> None:
    found = []
    for lib in (gs, torch):
        module = convolution(lib)
        room = lib.nn.utils if old else lib.nn.utils.parametrizations
        room.spectral_norm(module, dim=dim, n_power_iterations=2)
        share_vectors(lib, module, "weight_" if old else "parametrizations.weight.0._")
        output = module(lib.ones(1, 2, 3))
        (output * output).sum().backward()
        module.eval()
        module(lib.ones(1, 2, 3))
        values = [
            module.weight,
            *module.buffers(),
            *(p.grad for name, p in module.named_parameters() if name != "bias"),
        ]
        found.append([value.detach().numpy() for value in values])
        names = sorted(module.state_dict())
    assert names == sorted(module.state_dict())
    for mine, theirs in zip(*found, strict=True):
        numpy.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("old", [False, True])
def test_the_largest_singular_value_becomes_one(old: bool) -> None:
    gs.manual_seed(0)
    module = gs.nn.Linear(5, 4)
    (gs.nn.utils if old else parametrizations).spectral_norm(module, n_power_iterations=50)
    module(gs.ones(1, 5))
    assert numpy.linalg.norm(module.weight.detach().numpy(), 2) == pytest.approx(1.0, rel=1e-4)
    if old:
        kept = module.weight.detach().clone()
        gs.nn.utils.remove_spectral_norm(module)
        assert gs.allclose(module.weight, kept)
        assert sorted(module.state_dict()) == ["bias", "weight"]


def test_a_vector_is_divided_by_its_norm() -> None:
    module = parametrizations.spectral_norm(layer(gs), "bias")
    assert module.bias.norm().item() == pytest.approx(1.0)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning")
@pytest.mark.parametrize(
    "wrong",
    [
        lambda U, lib: U.weight_norm(U.weight_norm(layer(lib))),
        lambda U, lib: U.remove_weight_norm(layer(lib)),
        lambda U, lib: U.spectral_norm(U.spectral_norm(layer(lib))),
        lambda U, lib: U.remove_spectral_norm(layer(lib)),
        lambda U, lib: U.spectral_norm(layer(lib), n_power_iterations=0),
    ],
)
def test_refusals_of_the_older_forms(torch: Any, wrong: Any) -> None:
    same_complaint(torch, lambda lib: wrong(lib.nn.utils, lib))


def test_the_older_weight_norm_is_deprecated() -> None:
    with pytest.warns(FutureWarning, match=r"in favor of `gradscope\.nn\.utils\.parametrizations\.weight_norm`"):
        gs.nn.utils.weight_norm(layer(gs))
