"""The face of gradscope.inspect."""

import gradscope.inspect


def test_every_public_function_and_class_of_the_package_is_documented_with_types():
    for name in gradscope.inspect.__all__:
        thing = getattr(gradscope.inspect, name)
        assert thing.__doc__, name
        assert not thing.__doc__.startswith(f"{name}("), f"{name} has dataclass's own docstring"
