from __future__ import annotations

import pytest

from gradscope.inspect.dap.stack import stack_of
from gradscope.inspect.dap.variables import VariableReferences


def scopes(variables, program, frame=0):
    found = variables.scopes(program, stack_of(program)[frame])
    return {scope["name"]: scope["variablesReference"] for scope in found}


def names(variables, reference, start=0, count=0):
    return {one["name"]: one for one in variables.unfold(reference, start, count)}


@pytest.fixture
def tanh(program):
    program.until("op:Tanh")
    program.wait(10)
    return program


def test_a_node_has_its_gradients_its_saved_tensors_and_its_module(tanh):
    variables = VariableReferences()
    found = scopes(variables, tanh)
    assert list(found) == ["Gradients in", "Gradients out", "Saved tensors", "Module"]
    assert list(names(variables, found["Gradients in"])) == ["grads[0]"]
    assert names(variables, found["Gradients out"]) == {}
    assert list(names(variables, found["Saved tensors"])) == ["result"]
    assert {name: one["value"] for name, one in names(variables, found["Module"]).items()} == {
        "module": "1",
        "operator": "Tanh",
        "state": "current",
    }
    tanh.add_watch("1 + 1")
    (watch,) = names(variables, scopes(variables, tanh)["Watches"]).values()
    assert (watch["name"], watch["value"]) == ("1 + 1", "2")


def test_a_tensor_shows_its_shape_and_its_norm_before_its_elements(tanh):
    variables = VariableReferences()
    found = scopes(variables, tanh)
    (gradient,) = variables.unfold(found["Gradients in"], 0, 0)
    norm = float(tanh.evaluate_text("grads[0].norm().item()"))
    assert gradient["value"].startswith(f"(5, 4)  norm {norm:.4g}  [")
    (result,) = variables.unfold(found["Saved tensors"], 0, 0)
    assert result["value"].startswith("ok, version 0  (5, 4)  norm ")


def test_a_gradient_says_how_many_elements_are_nan_before_all_else(tanh):
    tanh.set_grad(0, "grads[0] * float('nan')")
    variables = VariableReferences()
    (gradient,) = variables.unfold(scopes(variables, tanh)["Gradients in"], 0, 0)
    assert gradient["value"].startswith("(5, 4)  nans 20  norm nan  [nan, ")


def test_a_tensor_is_unfolded_by_slices(tanh):
    variables = VariableReferences()
    (gradient,) = variables.unfold(scopes(variables, tanh)["Gradients in"], 0, 0)
    assert (gradient["type"], gradient["indexedVariables"], gradient["evaluateName"]) == (
        "float32[5, 4]",
        5,
        "grads[0]",
    )
    rows = variables.unfold(gradient["variablesReference"], 3, 5)
    assert [(row["name"], row["value"], row["indexedVariables"]) for row in rows] == [
        ("[3]", "[4]", 4),
        ("[4]", "[4]", 4),
    ]
    shown = [float(one["value"]) for one in variables.unfold(rows[1]["variablesReference"], 1, 2)]
    assert shown == pytest.approx(tanh.elements("grads[0]", 17, 19).values)
    assert variables.unfold(rows[1]["variablesReference"], 4, 9) == []


def test_of_a_long_tensor_a_thousand_elements_are_shown_unless_more_are_asked_for(tanh):
    variables = VariableReferences()
    shown = variables.of_expression(tanh, "np.zeros")
    assert shown["variablesReference"] == 0
    reference = variables.of_expression(tanh, "long")["variablesReference"]
    parts = variables.unfold(reference, 0, 0)
    assert (len(parts), parts[-1]["value"]) == (1001, "1000 are shown")
    assert len(variables.unfold(reference, 0, 3000)) == 3000


def test_a_gradient_and_one_element_of_it_can_be_set(tanh):
    variables = VariableReferences()
    scope = scopes(variables, tanh)["Gradients in"]
    changed = variables.change(scope, "grads[0]", "3.0")
    assert changed["value"] == "(5, 4)  norm 13.42  [3, 3, 3, 3, 3, 3, ...]"
    assert variables.unfold(changed["variablesReference"], 0, 1)[0]["value"] == "[4]"
    (gradient,) = variables.unfold(scope, 0, 0)
    row = variables.unfold(gradient["variablesReference"], 2, 1)[0]
    assert variables.change(row["variablesReference"], "[1]", "-1")["value"] == "-1.0"
    assert tanh.elements("grads[0]", 8, 11).values == (3.0, -1.0, 3.0)
    with pytest.raises(ValueError, match="a gradient of the current node and a variable of the program can"):
        variables.change(gradient["variablesReference"], "[1]", "0")
    with pytest.raises(ValueError, match="before a node its grads can"):
        variables.change(scope, "produced[0]", "0")


def test_a_variable_of_the_paused_function_can_be_set(tanh):
    variables = VariableReferences()
    frame = next(place for place, one in enumerate(stack_of(tanh)) if one.innermost)
    scope = scopes(variables, tanh, frame)["Locals"]
    assert names(variables, scope)["model"]["type"] == "Sequential"
    assert variables.change(scope, "count", "1 + 2")["value"] == "3"
    assert names(variables, scope)["count"]["value"] == "3"
    assert variables.change(scope, "model.scale", "2")["value"] == "2"  # which is no variable of the list


def test_an_expression_that_calls_something_is_asked_once(tanh):
    variables = VariableReferences()
    assert variables.of_expression(tanh, "seen.append(1)")["result"] == "None"
    assert tanh.evaluate_text("seen") == "[1]"
    assert variables.of_expression(tanh, "grads[0]")["indexedVariables"] == 5


def test_what_was_shown_at_an_earlier_stop_is_known_no_more(tanh):
    variables = VariableReferences()
    scope = scopes(variables, tanh)["Gradients in"]
    variables.forget()
    new = scopes(variables, tanh)["Gradients in"]
    assert new != scope
    with pytest.raises(ValueError, match="of an earlier stop"):
        variables.unfold(scope, 0, 0)


def test_an_earlier_node_on_the_stack_shows_what_has_been_seen_of_it(tanh):
    variables = VariableReferences()
    node = stack_of(tanh)[1].node
    found = scopes(variables, tanh, 1)
    (shown,) = [one for one in variables.unfold(found["Gradients out"], 0, 0) if one["type"] == "float32[5, 4]"]
    assert shown["evaluateName"] == f"at_node({node}).{shown['name']}"
    row = variables.unfold(shown["variablesReference"], 1, 1)[0]
    values = [float(one["value"]) for one in variables.unfold(row["variablesReference"], 0, 0)]
    assert values == pytest.approx(tanh.elements("grads[0]", 4, 8).values)
    for scope, name in (("Gradients out", "produced[0]"), ("Gradients in", "grads[0]")):
        with pytest.raises(ValueError, match="cannot be set: a gradient of the current node"):
            variables.change(found[scope], name, "0")
    assert tanh.elements("grads[0]", 0, 1).values != (0.0,)
