"""Every kind of finding is a rule in a file of its own; machines are told of them as SARIF has it."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

from gradscope.check.findings.finding_codes import CODES, all_codes, explain
from gradscope.inspect.diagnosis.explain_topics import find_topic
from gradscope.inspect.diagnosis.finding_limits import limits_of
from gradscope.inspect.diagnosis.program_facts import LIMITS
from gradscope.inspect.diagnosis.rule_registry import LEVELS, RULES, Rule, load_rules, metadata

RULES_OF_ALL = all_codes()


def test_a_file_holds_one_rule_and_is_called_by_its_code_and_name():
    folders = {"gradscope.check.rules": "GS", "gradscope.inspect.diagnosis.rules": "D"}
    for package, letters in folders.items():
        rules = load_rules(package)
        assert all(rule.code.startswith(letters) for rule in rules)
        modules = [type(rule).__module__.rpartition(".")[2] for rule in rules]
        assert [name.replace("_", "") for name in modules] == [
            f"{rule.code}{type(rule).__name__}".lower() for rule in rules
        ]
        folder = Path(__file__).parents[3] / package.replace(".", "/")
        assert modules == sorted(path.stem for path in folder.rglob("*.py") if path.stem != "__init__")


def test_codes_keep_their_meaning():
    assert {code: rule.title for code, rule in RULES_OF_ALL.items()} == {
        "GS101": "saved tensor modified in place",
        "GS102": "parameter modified between forward and backward",
        "GS103": "leaf that requires grad written in place",
        "GS104": "backward through a freed graph",
        "GS105": "in-place write to a view that does not allow it",
        "GS106": "saved tensor changed unnoticed",
        "GS107": "a module's input changed in place",
        "GS108": "shared gradient changed in place",
        "GS109": "memory that overlaps itself written in place",
        "GS110": "tensor kept on ctx changed",
        "GS111": "a part of an expanded tensor written",
        "GS112": "a result changed before it is read",
        "GS201": "backward of what has no history",
        "GS202": "a method that is not called",
        "GS203": "requires_grad that is not set",
        "GS204": "a grad mode that covers nothing",
        "GS205": "a leaf that its own update replaces",
        "GS206": "gradients zeroed before they are used",
        "D301": "a backward that raises",
        "D302": "NaN or Inf in a result or a gradient",
        "D303": "a parameter without a gradient",
        "D304": "a custom Function with a wrong derivative",
        "D305": "a gradient in the loss that is a constant",
        "D306": "predictions and targets that broadcast",
        "D307": "gradients that were never cleared",
        "D308": "parameters that no optimizer holds",
        "D309": "gradients that no optimizer used",
        "D310": "an optimizer that never steps",
        "D311": "a graph that grows with every iteration",
        "D312": "a custom Function that keeps its own graph",
        "D313": "gradients in one memory",
        "D314": "gradients that vanish",
        "D315": "gradients that explode",
        "D316": "gradients that are zero",
        "D317": "units that are dead",
        "D318": "a model that trains in eval mode",
        "D319": "a model that is validated in training mode",
        "D320": "a softmax or sigmoid before a loss that has its own",
        "D321": "a softmax along the wrong dimension",
        "D322": "two optimizers that step with the same gradients",
        "D323": "a learning rate that a schedule has taken away",
        "D324": "steps that move the weights by more than their size",
        "D325": "steps that hardly move the weights",
        "D326": "weight decay that takes the weights away",
        "D327": "gradients clipped after the step",
        "D328": "gradients clipped before they are unscaled",
        "D329": "units that start alike",
        "D330": "an initialisation that explodes or fades",
        "D331": "units that are saturated",
        "D332": "a mask that is inverted",
        "D333": "a hidden state that is detached at every step",
        "D334": "gradients that underflow in half precision",
        "D335": "a weight tying that was lost",
        "D336": "samples of a batch that influence each other",
        "D337": "a view where dimensions were to be exchanged",
        "D338": "a loss of log-probabilities that is given logits",
        "D339": "constants with which an optimizer does not work",
        "D340": "a normalisation over one number",
        "D341": "a dropout that drops nearly everything",
        "D342": "one module several times in a container",
        "D343": "clipping that changes no gradient",
        "D344": "a likelihood that is minimised",
        "D345": "a target that is learned with the prediction",
        "D346": "a loss without history whose requires_grad was set",
        "D347": "an optimizer that is made anew for each step",
        "D348": "a module that was to be frozen and is not",
        "D349": "a functional dropout that eval() does not stop",
        "D350": "scores and labels that are flattened in different orders",
        "D351": "two zero factors",
        "D352": "attention scores that are not scaled",
        "D353": "embeddings normalised along the batch",
        "D354": "inputs and labels that are shuffled apart",
        "D355": "a critic that the policy's loss trains",
        "D356": "data that is scaled down twice",
        "D357": "a loss that is given its target first",
        "D358": "targets that the last function cannot reach",
        "D359": "linear layers without a function between them",
        "D360": "a step that gives a name another tensor",
        "D361": "the same random numbers in every step",
        "D362": "a dropout between the last layer and the loss",
        "D363": "a schedule that is stepped before its optimizer",
    }


@pytest.mark.parametrize("code", RULES_OF_ALL)
def test_the_explanation(code):
    rule, text = RULES_OF_ALL[code], explain(code.lower())
    assert text.startswith(f"{code}: {rule.title} ({rule.severity})\n")
    assert rule.what in text
    assert max(map(len, text.splitlines())) <= 110
    assert not rule.topic or find_topic(rule.topic).name == rule.topic
    assert text.endswith(f"More: gradscope explain {rule.topic}") == bool(rule.topic)


def test_what_machines_are_told():
    """The reportingDescriptor of SARIF 2.1.0: an id, a name in Pascal case, texts that are not empty, a known level."""
    told = metadata(RULES_OF_ALL.values())
    assert [entry["id"] for entry in told] == list(RULES_OF_ALL)
    assert len({entry["name"] for entry in told}) == len(told)
    for entry in told:
        assert entry["name"].isidentifier()
        assert entry["name"][0].isupper()
        assert entry["defaultConfiguration"]["level"] in ("error", "warning", "note")
        assert entry["fullDescription"]["text"].endswith(".")
        assert entry["shortDescription"]["text"] in entry["help"]["text"]
        assert entry["help"]["markdown"].count("```") == 4


def test_a_silently_wrong_gradient_is_no_smaller_error():
    assert LEVELS["silent-wrong"] == LEVELS["error"] == "error"
    assert CODES["GS106"].severity == "silent-wrong"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"code": "GS101"}, "GS101 is SavedTensorModified, and not Mine as well"),
        ({"code": "mine"}, "Mine: no code 'mine', or no severity 'error'"),
        ({"code": "X901", "severity": "bad"}, "Mine: no code 'X901', or no severity 'bad'"),
    ],
)
def test_what_is_no_rule(fields, message):
    texts = {"title": "", "what": "", "bad": "", "good": ""}
    with pytest.raises(ValueError, match=message):
        type("Mine", (Rule,), {**texts, **fields, "__qualname__": "Mine"})
    assert "X901" not in RULES


# How many of the backward passes and steps are looked at: what is seen in them is seen.
_SAMPLING = {"sampled_backwards", "sampled_steps"}
# Facts that several rules share are judged by a limit for some of them only.
_SHARED = {"gradscope.inspect.diagnosis.program_facts", "gradscope.inspect.diagnosis.training.update_sizes"}


def _modules_of(rule):
    """Return the modules in which a rule, and the watches of its facts, are written."""
    names = {type(rule).__module__, *(fact.watch.__module__ for fact in rule.needs)} - _SHARED
    return [importlib.import_module(name) for name in names]


def test_a_finding_that_a_limit_decides_is_not_certain():
    certain = {
        code
        for code, rule in RULES_OF_ALL.items()
        if code.startswith("D") and rule.certainty == "certain" and LIMITS not in rule.needs
    }
    limited = {
        code
        for code in certain
        for module in _modules_of(RULES_OF_ALL[code])
        if set(re.findall(r"limits\.([a-z]\w+)", inspect.getsource(module))) & set(limits_of("doctor")) - _SAMPLING
    }
    assert limited == set()
