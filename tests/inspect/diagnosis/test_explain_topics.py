"""The programs in the texts of `gradscope explain` run, and do what the texts say."""

import contextlib

import pytest

import gradscope as gs
from gradscope.inspect.diagnosis.explain_topics import TOPICS, find_topic, suggest, topic_text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("topic", TOPICS.values(), ids=TOPICS)
def test_programs(topic):
    raises = "# RuntimeError" in topic.bad
    with pytest.raises(RuntimeError) if raises else contextlib.nullcontext():
        exec(topic.bad, {"gs": gs})
    exec(topic.good, {"gs": gs})


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("topic", TOPICS.values(), ids=TOPICS)
def test_programs_on_pytorch(topic, torch):
    raises = "# RuntimeError" in topic.bad
    with pytest.raises(RuntimeError) if raises else contextlib.nullcontext():
        exec(topic.bad, {"gs": torch})
    exec(topic.good, {"gs": torch})


@pytest.mark.parametrize("topic", TOPICS.values(), ids=TOPICS)
def test_texts(topic):
    text = topic_text(topic)
    assert text.startswith(f"{topic.name}: {topic.title}\n\n")
    assert len(topic.text) < 1000
    assert max(map(len, text.splitlines())) <= 110
    assert all(find_topic(alias) is topic for alias in topic.aliases)


def test_names():
    names = [alias for topic in TOPICS.values() for alias in (topic.name, *topic.aliases)]
    assert len(set(names)) == len(names)
    assert find_topic("DOUBLE_where").name == "double-where"
    assert find_topic("nothing of the sort") is None
    assert suggest("lef") == ["leaf"]
    assert suggest("GS11", ["GS101", "GS102"]) == ["GS101", "GS102"] or suggest("GS11", ["GS101"]) == ["GS101"]
