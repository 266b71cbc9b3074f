"""All layers: shown and computed as in PyTorch, with the same parameters."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope import nn
from tests.side_by_side import compare, same_complaint

rng = numpy.random.default_rng(0)


def normal(*shape: int) -> Any:
    return rng.normal(size=shape)


LAYERS = {
    "identity": (lambda n: n.Identity(3, x=1), (2, 3)),
    "linear": (lambda n: n.Linear(3, 4), (2, 3)),
    "linear without bias": (lambda n: n.Linear(3, 4, bias=False), (2, 3)),
    "conv1d": (lambda n: n.Conv1d(2, 3, 3), (2, 2, 6)),
    "conv2d": (lambda n: n.Conv2d(2, 4, 3, 2, 1, groups=2, bias=False), (1, 2, 6, 5)),
    "conv2d same": (lambda n: n.Conv2d(2, 2, (3, 1), padding="same", dilation=2), (1, 2, 6, 5)),
    "conv2d reflected": (
        lambda n: n.Conv2d(2, 2, (4, 3), padding=(2, 1), padding_mode="reflect", bias=False),
        (1, 2, 6, 5),
    ),
    "conv1d going round": (lambda n: n.Conv1d(2, 2, 4, padding="same", padding_mode="circular", dilation=2), (1, 2, 7)),
    "conv3d valid": (lambda n: n.Conv3d(1, 1, 2, padding="valid", padding_mode="replicate"), (1, 1, 3, 3, 3)),
    "conv3d": (lambda n: n.Conv3d(1, 2, 2), (1, 1, 3, 3, 3)),
    "transposed": (lambda n: n.ConvTranspose2d(2, 3, 3, 2, 1, 1), (1, 2, 4, 4)),
    "transposed 1d": (lambda n: n.ConvTranspose1d(2, 4, 3, groups=2), (1, 2, 4)),
    "relu": (lambda n: n.ReLU(), (2, 3)),
    "relu6": (lambda n: n.ReLU6(), (2, 3)),
    "leaky": (lambda n: n.LeakyReLU(0.2), (2, 3)),
    "prelu": (lambda n: n.PReLU(3), (2, 3)),
    "elu": (lambda n: n.ELU(0.5), (2, 3)),
    "celu": (lambda n: n.CELU(0.5), (2, 3)),
    "selu": (lambda n: n.SELU(), (2, 3)),
    "gelu": (lambda n: n.GELU(approximate="tanh"), (2, 3)),
    "silu": (lambda n: n.SiLU(), (2, 3)),
    "mish": (lambda n: n.Mish(), (2, 3)),
    "sigmoid": (lambda n: n.Sigmoid(), (2, 3)),
    "tanh": (lambda n: n.Tanh(), (2, 3)),
    "log sigmoid": (lambda n: n.LogSigmoid(), (2, 3)),
    "softsign": (lambda n: n.Softsign(), (2, 3)),
    "tanhshrink": (lambda n: n.Tanhshrink(), (2, 3)),
    "hardtanh": (lambda n: n.Hardtanh(-0.5, 0.5), (2, 3)),
    "hardsigmoid": (lambda n: n.Hardsigmoid(), (2, 3)),
    "hardswish": (lambda n: n.Hardswish(), (2, 3)),
    "hardshrink": (lambda n: n.Hardshrink(), (2, 3)),
    "softshrink": (lambda n: n.Softshrink(0.3), (2, 3)),
    "softplus": (lambda n: n.Softplus(2.0), (2, 3)),
    "threshold": (lambda n: n.Threshold(0.1, 20.0), (2, 3)),
    "softmax": (lambda n: n.Softmax(dim=1), (2, 3)),
    "softmax 2d": (lambda n: n.Softmax2d(), (2, 3, 2, 2)),
    "glu": (lambda n: n.GLU(1), (2, 4)),
    "rrelu": (lambda n: n.RReLU(0.2, 0.2, inplace=False), (2, 3)),
    "channel shuffle": (lambda n: n.ChannelShuffle(2), (2, 4, 3)),
    "alpha dropout": (lambda n: n.AlphaDropout(0.3).eval(), (2, 3)),
    "feature alpha dropout": (lambda n: n.FeatureAlphaDropout(0.3, inplace=True).eval(), (2, 3)),
    "softmin": (lambda n: n.Softmin(dim=1), (2, 3)),
    "log softmax": (lambda n: n.LogSoftmax(dim=1), (2, 3)),
    "constant pad": (lambda n: n.ConstantPad1d(2, 3.5), (2, 3)),
    "constant pad 2d": (lambda n: n.ConstantPad2d((1, 0, -1, 2), 3.5), (1, 3, 2)),
    "constant pad 3d": (lambda n: n.ConstantPad3d(1, -1.0), (2, 3, 1)),
    "zero pad": (lambda n: n.ZeroPad1d(2), (2, 3)),
    "zero pad 2d": (lambda n: n.ZeroPad2d((1, 0, 2, 1)), (2, 3)),
    "zero pad 3d": (lambda n: n.ZeroPad3d(1), (2, 3, 1)),
    "reflection": (lambda n: n.ReflectionPad1d((2, 1)), (2, 3)),
    "reflection 2d": (lambda n: n.ReflectionPad2d(1), (1, 2, 3)),
    "reflection 3d": (lambda n: n.ReflectionPad3d(1), (1, 2, 3, 2)),
    "replication": (lambda n: n.ReplicationPad1d((2, 1)), (2, 3)),
    "replication 2d": (lambda n: n.ReplicationPad2d(1), (1, 2, 3)),
    "replication 3d": (lambda n: n.ReplicationPad3d(1), (1, 2, 3, 2)),
    "going round": (lambda n: n.CircularPad1d((2, 1)), (2, 3)),
    "going round 2d": (lambda n: n.CircularPad2d(1), (1, 2, 3)),
    "going round 3d": (lambda n: n.CircularPad3d(1), (1, 2, 3, 2)),
    "flatten": (lambda n: n.Flatten(), (2, 3, 2)),
    "unflatten": (lambda n: n.Unflatten(1, (3, 2)), (2, 6)),
    "dropout": (lambda n: n.Dropout(0.3).eval(), (2, 3)),
    "dropout2d": (lambda n: n.Dropout2d().eval(), (2, 3, 2, 2)),
    "layer norm": (lambda n: n.LayerNorm((3, 2)), (2, 3, 2)),
    "layer norm without": (lambda n: n.LayerNorm(3, elementwise_affine=False), (2, 3)),
    "group norm": (lambda n: n.GroupNorm(2, 4), (2, 4, 3)),
    "group norm without": (lambda n: n.GroupNorm(1, 4, affine=False), (2, 4)),
    "group norm without bias": (lambda n: n.GroupNorm(2, 4, bias=False), (2, 4)),
    "rms norm": (lambda n: n.RMSNorm((3, 2)), (2, 3, 2)),
    "rms norm without": (lambda n: n.RMSNorm(3, eps=1e-3, elementwise_affine=False), (2, 3)),
    "batch norm 1d": (lambda n: n.BatchNorm1d(3), (4, 3)),
    "batch norm 2d": (lambda n: n.BatchNorm2d(3, momentum=None), (2, 3, 2, 2)),
    "batch norm 3d": (lambda n: n.BatchNorm3d(2, affine=False, track_running_stats=False), (2, 2, 2, 2, 1)),
    "max pool": (lambda n: n.MaxPool2d(2), (1, 2, 4, 4)),
    "max pool 3d": (lambda n: n.MaxPool3d(2), (1, 2, 2, 4, 4)),
    "avg pool 3d": (lambda n: n.AvgPool3d(2, 1, divisor_override=3), (1, 2, 2, 3, 3)),
    "max pool 1d": (lambda n: n.MaxPool1d(3, 1), (1, 2, 4)),
    "avg pool": (lambda n: n.AvgPool2d(2, 1), (1, 2, 4, 4)),
    "avg pool 1d": (lambda n: n.AvgPool1d(2), (1, 2, 4)),
    "adaptive pool": (lambda n: n.AdaptiveAvgPool2d((2, 3)), (1, 2, 5, 4)),
    "adaptive pool 1d": (lambda n: n.AdaptiveAvgPool1d(2), (1, 2, 5)),
    "adaptive pool 3d": (lambda n: n.AdaptiveAvgPool3d((2, None, 1)), (1, 2, 3, 2, 4)),
    "adaptive max pool 1d": (lambda n: n.AdaptiveMaxPool1d(3), (1, 2, 5)),
    "adaptive max pool": (lambda n: n.AdaptiveMaxPool2d((2, None)), (1, 2, 5, 4)),
    "adaptive max pool 3d": (lambda n: n.AdaptiveMaxPool3d(2), (1, 2, 3, 2, 4)),
    "power pool 1d": (lambda n: n.LPPool1d(2, 3, stride=1), (1, 2, 5)),
    "power pool": (lambda n: n.LPPool2d(3, (2, 3), ceil_mode=True), (1, 2, 5, 4)),
    "power pool 3d": (lambda n: n.LPPool3d(2, 2), (1, 2, 2, 4, 2)),
    "fractional pool": (
        lambda n: n.FractionalMaxPool2d(2, 3, _random_samples=n.Buffer(n.Parameter().new_full((1, 2, 2), 0.4))),
        (1, 2, 6, 5),
    ),
    "fractional pool 3d": (
        lambda n: n.FractionalMaxPool3d(
            2, output_ratio=0.5, _random_samples=n.Buffer(n.Parameter().new_full((1, 2, 3), 0.7))
        ),
        (1, 2, 5, 6, 4),
    ),
    "transposed 3d": (lambda n: n.ConvTranspose3d(2, 3, 2, stride=2), (1, 2, 2, 1, 2)),
    "instance norm 1d": (lambda n: n.InstanceNorm1d(3), (2, 3, 4)),
    "instance norm": (lambda n: n.InstanceNorm2d(3, affine=True, track_running_stats=True), (2, 3, 2, 3)),
    "instance norm of one": (lambda n: n.InstanceNorm2d(3, affine=True), (3, 2, 3)),
    "instance norm 3d": (lambda n: n.InstanceNorm3d(2, affine=True, bias=False), (2, 2, 2, 2, 1)),
    "response norm": (lambda n: n.LocalResponseNorm(3, alpha=0.1), (2, 5, 3, 2)),
    "response norm 1d": (lambda n: n.LocalResponseNorm(2), (2, 5, 3)),
    "upsample": (lambda n: n.Upsample(scale_factor=(2, 1.5), mode="bilinear"), (1, 2, 3, 4)),
    "upsample nearest": (lambda n: n.UpsamplingNearest2d(scale_factor=2), (1, 2, 3, 4)),
    "upsample bilinear": (lambda n: n.UpsamplingBilinear2d(size=(5, 3)), (1, 2, 3, 4)),
    "pixel shuffle": (lambda n: n.PixelShuffle(2), (1, 8, 3, 2)),
    "pixel unshuffle": (lambda n: n.PixelUnshuffle(2), (1, 2, 4, 6)),
    "unfold": (lambda n: n.Unfold((2, 3), padding=1, stride=(1, 2)), (1, 2, 4, 5)),
    "fold": (lambda n: n.Fold((4, 5), (2, 2), dilation=2), (1, 8, 6)),
}


def with_numbers(lib: Any, make: Any) -> Any:
    """Return the layer with the same parameters in either library."""
    layer, numbers = make(lib.nn), numpy.random.default_rng(3)
    layer.to(lib.float64)
    for parameter in layer.parameters():
        parameter.data = lib.tensor(numbers.normal(size=tuple(parameter.shape)))
    return layer


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Using padding='same':UserWarning")
@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_that_of_pytorch(torch: Any, name: str) -> None:
    make, shape = LAYERS[name]
    layers = {lib: with_numbers(lib, make) for lib in (gs, torch)}
    mine, theirs = layers.values()
    assert repr(mine) == repr(theirs).replace("torch", "gradscope")
    assert list(mine.state_dict()) == list(theirs.state_dict())
    shapes = [[tuple(p.shape) for p in layer.parameters()] for layer in (mine, theirs)]
    assert shapes[0] == shapes[1]
    compare(torch, lambda lib, x: layers[lib](x), normal(*shape), names=False, twice=False)
    for (_, a), (_, b) in zip(mine.named_buffers(), theirs.named_buffers(), strict=True):
        numpy.testing.assert_allclose(a.numpy(), b.numpy())
    for layer in (mine, theirs):
        layer.eval()
    compare(torch, lambda lib, x: layers[lib](x), normal(*shape), names=False, twice=False)


@pytest.mark.torch
def test_layers_of_two_inputs(torch: Any) -> None:
    layers = {lib: with_numbers(lib, lambda n: n.Bilinear(3, 4, 2)) for lib in (gs, torch)}
    compare(torch, lambda lib, x, y: layers[lib](x, y), normal(5, 3), normal(5, 4), names=False, twice=False)
    for make in (lambda n: n.CosineSimilarity(0), lambda n: n.PairwiseDistance(1.0, keepdim=True)):
        made = {lib: make(lib.nn) for lib in (gs, torch)}
        assert repr(made[gs]) == repr(made[torch])
        compare(torch, lambda lib, x, y: made[lib](x, y), normal(4, 3), normal(4, 3))  # noqa: B023
    losses = [
        lambda n: n.L1Loss(),
        lambda n: n.MSELoss(reduction="sum"),
        lambda n: n.SmoothL1Loss(beta=0.5),
        lambda n: n.HuberLoss(delta=0.5),
        lambda n: n.KLDivLoss(reduction="batchmean"),
        lambda n: n.BCEWithLogitsLoss(),
        lambda n: n.CrossEntropyLoss(),
    ]
    for make in losses:
        made = {lib: make(lib.nn) for lib in (gs, torch)}
        assert repr(made[gs]) == repr(made[torch])
        compare(torch, lambda lib, x, y: made[lib](x, y), normal(4, 3), rng.random((4, 3)), names=False, twice=False)  # noqa: B023
    target, weight = numpy.array([0, 2, 1]), rng.random(3)
    for name in ("NLLLoss", "CrossEntropyLoss"):
        made = {lib: getattr(lib.nn, name)(weight=lib.tensor(weight)) for lib in (gs, torch)}
        assert list(made[gs].state_dict()) == ["weight"]
        compare(torch, lambda lib, x: made[lib](x, lib.tensor(target)), normal(3, 3), twice=False)  # noqa: B023
    compare(torch, lambda lib, x: lib.nn.BCELoss()(x.sigmoid(), lib.zeros_like(x)), normal(4), twice=False)


@pytest.mark.torch
def test_embedding(torch: Any) -> None:
    layers = {lib: with_numbers(lib, lambda n: n.Embedding(5, 3, padding_idx=-1)) for lib in (gs, torch)}
    assert repr(layers[gs]) == repr(layers[torch])
    found = []
    for lib, layer in layers.items():
        layer(lib.tensor([[0, 4], [4, 2]])).sum().backward()
        found.append(layer.weight.grad.tolist())
    assert found[0] == found[1]
    fresh = nn.Embedding(4, 2, padding_idx=1)
    assert fresh.weight[1].tolist() == [0.0, 0.0]
    rows = gs.rand(4, 2)
    assert nn.Embedding.from_pretrained(rows)(gs.tensor([3])).tolist() == rows[3:].tolist()


@pytest.mark.torch
def test_embedding_bag(torch: Any) -> None:
    def plain(n: Any) -> Any:
        return n.EmbeddingBag(5, 3, padding_idx=-1)

    def other(n: Any) -> Any:
        return n.EmbeddingBag(5, 3, 2.0, 1.0, mode="sum", include_last_offset=True)

    for make in (plain, other):
        layers = {lib: with_numbers(lib, make) for lib in (gs, torch)}
        assert repr(layers[gs]) == repr(layers[torch])
        assert list(layers[gs].state_dict()) == list(layers[torch].state_dict())
        found = []
        for lib, layer in layers.items():
            bags = layer(lib.tensor([0, 4, 4, 2, 1]), lib.tensor([0, 2, 5]))
            bags.square().sum().backward()
            found.append([bags.detach().numpy(), layer.weight.grad.numpy()])
        for mine, theirs in zip(*found, strict=True):
            numpy.testing.assert_allclose(mine, theirs)
    assert nn.EmbeddingBag(4, 2, padding_idx=1).weight[1].tolist() == [0.0, 0.0]
    rows = gs.rand(4, 2)
    frozen = nn.EmbeddingBag.from_pretrained(rows, mode="max")
    assert not frozen.weight.requires_grad
    assert frozen(gs.tensor([[1, 3]])).tolist() == [rows[[1, 3]].max(0)[0].tolist()]


def test_fresh_parameters_are_bounded_as_documented() -> None:
    gs.manual_seed(0)
    layer = nn.Linear(100, 50)
    for parameter in layer.parameters():
        assert 0.05 < parameter.detach().abs().max().item() <= 0.1
    convolution = nn.Conv2d(4, 8, 5)
    assert 0.05 < convolution.weight.detach().abs().max().item() <= 0.1


def test_an_unknown_padding_mode() -> None:
    with pytest.raises(ValueError, match=r"padding_mode must be one of {'zeros', 'reflect', 'replicate', 'circular'}"):
        nn.Conv2d(1, 1, 3, padding_mode="mirror")


def test_running_statistics_are_used_in_evaluation() -> None:
    layer = nn.BatchNorm1d(2)
    for _ in range(3):
        layer(gs.rand(8, 2) * 3 + 1)
    assert layer.num_batches_tracked.item() == 3
    layer.eval()
    x = gs.rand(1, 2)
    expected = (x - layer.running_mean) / (layer.running_var + layer.eps).sqrt()
    numpy.testing.assert_allclose(layer(x).detach().numpy(), expected.numpy(), rtol=1e-5)
    assert layer.num_batches_tracked.item() == 3


def test_dropout_only_in_training() -> None:
    gs.manual_seed(0)
    layer, x = nn.Dropout(0.5), gs.ones(1000)
    assert 300 < int((layer(x) == 0).sum().item()) < 700
    assert layer.eval()(x) is x


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda n: n.Dropout(2.0),
        lambda n: n.Unflatten(1, 3),
        lambda n: n.GroupNorm(3, 4),
        lambda n: n.Conv2d(3, 4, 2, groups=2),
        lambda n: n.Conv2d(2, 3, 2, groups=2),
        lambda n: n.Conv2d(2, 2, 2, stride=2, padding="same"),
        lambda n: n.Embedding(3, 2, padding_idx=5),
        lambda n: n.ConvTranspose2d(1, 2, 3, padding_mode="reflect"),
    ],
)
def test_wrong_settings_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, lambda lib: wrong(lib.nn))


@pytest.mark.parametrize(("layer", "shape"), [(nn.BatchNorm2d(2), (3, 2)), (nn.BatchNorm1d(2), (2,))])
def test_batch_norm_of_the_wrong_number_of_dimensions(layer: nn.Module, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"expected .*D input \(got .D input\)"):
        layer(gs.zeros(*shape))


# --- containers -------------------------------------------------------------------------------------------------------


def numbered() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))


def test_sequential_is_a_list() -> None:
    model = numbered()
    first, second, third = model
    assert (len(model), model[-1]) == (3, third)
    assert list(model[:2]) == [first, second]
    assert list(model[1:].named_children()) == [("1", second), ("2", third)]
    assert model.append(nn.Tanh()) is model
    assert [name for name, _ in model.insert(1, nn.Sigmoid()).named_children()] == list("01234")
    assert isinstance(model.pop(1), nn.Sigmoid)
    del model[-1]
    assert list(model) == [first, second, third]
    model[1] = nn.Identity()
    assert isinstance(model[1], nn.Identity)
    assert len(model + numbered()) == 6
    named = nn.Sequential(OrderedDict(first=nn.ReLU(), second=nn.Tanh()))
    assert [name for name, _ in named.named_children()] == ["first", "second"]
    assert named.first is named[0]


def test_module_list_and_dict() -> None:
    modules = nn.ModuleList([nn.ReLU()])
    modules += [nn.Tanh()]
    modules.extend([nn.Sigmoid()]).insert(0, nn.GELU())
    assert [type(m).__name__ for m in modules] == ["GELU", "ReLU", "Tanh", "Sigmoid"]
    assert isinstance(modules[1:], nn.ModuleList)
    assert len(modules + nn.ModuleList([nn.ReLU()])) == 5
    with pytest.raises(NotImplementedError):
        modules(gs.ones(1))
    table = nn.ModuleDict({"a": nn.ReLU()})
    table["b"] = nn.Linear(1, 1)
    table.update([("c", nn.Tanh())])
    assert list(table) == list(table.keys()) == ["a", "b", "c"]
    assert "b" in table
    assert len(list(table.parameters())) == 2
    assert isinstance(table.pop("b"), nn.Linear)
    del table["a"]
    assert [type(m) for m in table.values()] == [nn.Tanh]
    table.clear()
    assert len(table) == 0


@pytest.mark.torch
def test_equal_modules_of_a_list_are_shown_once(torch: Any) -> None:
    def lists(n: Any) -> list[Any]:
        block = n.ModuleList([n.Linear(2, 2), n.Linear(2, 2), n.ReLU(), n.Linear(2, 2)])
        return [n.ModuleList(), n.ModuleList([n.ReLU()]), block, n.ModuleList([block, block])]

    assert [repr(mine) for mine in lists(nn)] == [repr(theirs) for theirs in lists(torch.nn)]


@pytest.mark.torch
def test_parameter_containers(torch: Any) -> None:
    shown = []
    for lib in (gs, torch):
        listed = lib.nn.ParameterList([lib.zeros(2)])
        listed += [lib.zeros(2, 3)]
        listed[0] = lib.ones(2)
        table = lib.nn.ParameterDict({"a": lib.zeros(2)})
        table["b"] = lib.ones(1)
        names = [n for m in (listed, table) for n, _ in m.named_parameters()]
        shown.append([names, repr(listed).replace("torch", "gradscope"), len(table), list(table.keys()), "a" in table])
        del table["a"]
        assert [tuple(v.shape) for v in table.values()] == [(1,)]
        assert len(listed[1:]) == 1
    assert shown[0] == shown[1]


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda n: n.Sequential(n.ReLU())[3],
        lambda n: n.Sequential(3),
        lambda n: n.ModuleList([n.ReLU()])[-2],
        lambda n: n.ModuleDict({"a.b": n.ReLU()}),
    ],
)
def test_wrong_containers_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, lambda lib: wrong(lib.nn))


def test_a_sequence_times_a_number(torch: Any) -> None:
    found = []
    for lib in (gs, torch):
        sequence = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.ReLU())
        double, triple = sequence * 2, 3 * sequence
        assert double[2] is double[0] is sequence[0]
        sequence *= 2
        found.append([len(double), len(triple), len(sequence), [*dict(triple.named_children())]])
    assert found[0] == found[1]


@pytest.mark.parametrize("factor", [0, -1, 1.5])
def test_a_sequence_times_what_is_no_count(torch: Any, factor: Any) -> None:
    same_complaint(torch, lambda lib: lib.nn.Sequential() * factor)


def test_batch_normalization_over_all_processes_is_that_of_this_one(torch: Any) -> None:
    found = []
    for lib in (gs, torch):
        plain = lib.nn.Sequential(lib.nn.BatchNorm2d(3, momentum=None), lib.nn.Sequential(lib.nn.BatchNorm1d(3)))
        model = lib.nn.SyncBatchNorm.convert_sync_batchnorm(plain)
        assert model[0].weight is plain[0].weight
        assert model[0].running_mean is plain[0].running_mean
        x = lib.arange(24.0).reshape(2, 3, 4)
        found.append([model[0](x).tolist(), plain[0].running_var.tolist(), repr(model)])
    numpy.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-4)
    assert found[0][1:] == found[1][1:]
    same_complaint(torch, lambda lib: lib.nn.SyncBatchNorm(3)(lib.ones(3)))
    with pytest.raises(NotImplementedError, match="there are no process groups here"):
        gs.nn.SyncBatchNorm(3, process_group=object())
