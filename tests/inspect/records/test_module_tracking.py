"""Module paths and parameter names."""

import gc
import warnings

import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.adapters import NativeAdapter


class Inner(gs.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = gs.nn.Linear(2, 2)
        self.broken = False

    def forward(self, x):
        if self.broken:
            raise ValueError("broken")
        return self.fc(x) * 2


class Outer(gs.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = gs.nn.Sequential(Inner(), Inner())

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x.relu()


def modules(loss):
    return {(d["operator"], d["module"]) for _, d in gi.graph(loss).nodes(data=True) if d["name"] != "AccumulateGrad"}


def test_paths_are_those_of_named_modules():
    model = Outer()
    with gi.track() as tracker:
        loss = model(gs.ones(1, 2)).sum()
        paths = tracker.parameter_paths()
    assert modules(loss) == {
        ("Sum", ""), ("Relu", ""),
        ("Mul", "blocks.0"), ("Mul", "blocks.1"), ("Addmm", "blocks.0.fc"), ("Addmm", "blocks.1.fc"),
    }  # fmt: skip
    assert paths == {id(p): name for name, p in model.named_parameters()}


def test_of_two_models_each_is_told_apart_by_its_variable():
    one, two = gs.nn.Sequential(gs.nn.Linear(2, 2)), gs.nn.Linear(2, 2)
    with gi.track() as tracker:
        loss = two(one(gs.ones(1, 2))).sum()
        names = sorted(tracker.parameter_paths().values())
    assert names == ["one.0.bias", "one.0.weight", "two.bias", "two.weight"]
    assert modules(loss) == {("Sum", ""), ("Addmm", "one.0"), ("Addmm", "two")}


def test_parts_and_wholes_of_a_model_and_losses_are_no_other_model():
    part = gs.nn.Linear(2, 2)
    whole, criterion = gs.nn.Sequential(part), gs.nn.CrossEntropyLoss()
    with gi.track() as tracker:
        criterion(whole(gs.ones(1, 2)), gs.tensor([0]))
        assert sorted(tracker.parameter_paths().values()) == ["0.bias", "0.weight"]


def test_a_model_of_another_function_is_no_other_model():
    def loss():
        model = gs.nn.Linear(2, 2)
        return model(gs.ones(1, 2)).sum()

    model = gs.nn.Linear(2, 2)
    with gi.track() as tracker:
        loss()
        model(gs.ones(1, 2))
        assert sorted(tracker.parameter_paths().values()) == ["bias", "weight"]


def test_the_models_of_a_trainer_are_told_apart_by_its_attributes():
    class Trainer:
        def __init__(self):
            self.generator, self.discriminator = gs.nn.Linear(2, 2), gs.nn.Linear(2, 1)

        def loss(self):
            return self.discriminator(self.generator(gs.ones(1, 2))).sum()

    trainer = Trainer()
    with gi.track() as tracker:
        trainer.loss()
        names = {name.partition(".")[0] for name in tracker.parameter_paths().values()}
    assert names == {"generator", "discriminator"}


def test_a_second_model_in_no_variable_is_told_apart_by_its_class():
    one, others = gs.nn.Sequential(gs.nn.Linear(2, 2)), [Inner(), Inner()]
    with gi.track() as tracker:
        one(gs.ones(1, 2))
        loss = others[1](others[0](gs.ones(1, 2))).sum()
        assert sorted(tracker.parameter_paths().values()) == [
            "0.bias", "0.weight", "Inner#2.fc.bias", "Inner#2.fc.weight", "Inner.fc.bias", "Inner.fc.weight",
        ]  # fmt: skip
    assert modules(loss) == {
        ("Sum", ""), ("Mul", "Inner"), ("Addmm", "Inner.fc"), ("Mul", "Inner#2"), ("Addmm", "Inner#2.fc"),
    }  # fmt: skip


def test_a_loss_module_does_not_take_the_models_place():
    with gi.track():
        gs.nn.CrossEntropyLoss()(gs.ones(1, 2, requires_grad=True), gs.tensor([0]))
        loss = gs.nn.Sequential(gs.nn.Linear(2, 2))(gs.ones(1, 2)).sum()
    assert modules(loss) == {("Sum", ""), ("Addmm", "0")}


def test_a_part_that_was_called_before_the_whole_takes_the_wholes_names():
    model = Outer()
    with gi.track() as tracker:
        model.blocks[1](gs.ones(1, 2))
        loss = model(gs.ones(1, 2)).sum()
        assert set(tracker.parameter_paths().values()) == {name for name, _ in model.named_parameters()}
    assert ("Mul", "blocks.1") in modules(loss)


def test_a_module_that_raised_is_not_running_any_more():
    model = Inner()
    with gi.track():
        for broken in (True, False):
            model.broken = broken
            try:
                loss = model(gs.ones(1, 2)).sum()
            except ValueError:
                assert broken
    assert modules(loss) == {("Sum", ""), ("Mul", ""), ("Addmm", "fc")}


def test_a_model_that_has_gone_leaves_its_place():
    with gi.track() as tracker:
        for _ in range(2):
            model = Inner()
            model(gs.ones(1, 2))
            assert sorted(tracker.parameter_paths().values()) == ["fc.bias", "fc.weight"]
            del model
            gc.collect()


def test_keys_are_never_given_twice():
    adapter, keys = NativeAdapter(), []
    for _ in range(50):
        y = gs.ones(2, requires_grad=True) * 2
        keys.append(adapter.key(y.grad_fn))
        assert adapter.key(y.grad_fn) == keys[-1]
        del y
    assert len(set(keys)) == 50


class Lightning(gs.nn.Module):
    """A module that is trained by a method of its own, as those of PyTorch Lightning are."""

    def __init__(self):
        super().__init__()
        self.encoder, self.head = Outer(), gs.nn.Linear(2, 1)

    def training_step(self, batch):
        return self.head(self.encoder(batch)).sum()


def test_a_module_whose_method_calls_its_parts_gives_their_paths():
    model = Lightning()
    with gi.track() as tracker:
        loss = model.training_step(gs.ones(1, 2))
    assert ("Addmm", "head") in modules(loss)
    assert ("Addmm", "encoder.blocks.1.fc") in modules(loss)
    assert tracker.parameter_paths()[id(model.head.weight)] == "head.weight"


def test_a_module_may_call_another_before_it_is_made(fw):
    class Late(fw.nn.Module):
        def __init__(self, transform):
            transform(fw.ones(1, 2))
            super().__init__()
            self.head = fw.nn.Linear(2, 1)

        def forward(self, x):
            return self.head(x)

    with gi.track() as tracker:
        model = Late(fw.nn.Linear(2, 2))
        model(fw.ones(1, 2))
    assert id(model.head.weight) in tracker.parameter_paths()


def test_a_part_that_is_called_alone_has_the_path_that_it_has_in_the_whole_and_no_more():
    model = Lightning()
    with gi.track() as tracker:
        loss = model.head(gs.ones(1, 2)).sum()
    assert tracker.parameter_paths() == {id(model.head.weight): "head.weight", id(model.head.bias): "head.bias"}
    assert ("Addmm", "head") in modules(loss)


def test_parts_of_two_models_are_told_apart_by_the_variables_of_these():
    one, other = Lightning(), Lightning()
    with gi.track() as tracker:
        one.encoder(other.head(gs.ones(1, 2)).expand(1, 2))
    assert set(tracker.roots()) == {"one.encoder", "other.head"}


def test_parts_that_are_called_before_the_whole_leave_their_places_to_it():
    model = Lightning()
    model.forward = lambda x: model.head(model.encoder(x))
    with gi.track() as tracker:
        model.head(model.encoder(gs.ones(1, 2)))
        assert set(tracker.roots()) == {"encoder", "head"}
        model(gs.ones(1, 2))
    assert set(tracker.roots()) == {""}
    assert set(tracker.parameter_paths().values()) == {name for name, _ in model.named_parameters()}


@pytest.mark.torch
def test_a_graph_that_a_library_has_traced_for_itself_is_no_model():
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(3, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one of const_fold's own
        with gi.track() as tracker:
            _, jvp = torch.func.linearize(lambda x: model(x).tanh(), torch.ones(3))
            jvp(torch.ones(3))
    assert list(tracker.roots()) == [""]
    assert tracker.roots()[""] is model


@pytest.mark.torch
def test_a_graph_that_the_program_has_traced_is_a_model_however_it_is_called():
    torch = pytest.importorskip("torch")
    traced = [torch.fx.symbolic_trace(torch.nn.Linear(3, 3))]
    with gi.track() as tracker:
        traced[0](torch.ones(3))
    assert tracker.roots() == {"": traced[0]}
    (held,) = traced
    with gi.track() as tracker:
        torch.func.functional_call(held, dict(held.named_parameters()), (torch.ones(3),))
    assert tracker.roots() == {"": held}
