"""Where in the program something happened."""

import linecache

from gradscope.runtime.call_sites import MOST_FRAMES, capture_call_site, following_libraries, user_site


def test_the_same_place_is_the_same_site():
    def here():
        return user_site()

    first, second = here(), here()
    assert first is second
    assert first.user_frame().function == "test_the_same_place_is_the_same_site.<locals>.here"
    assert first.source_line == "return user_site()"
    assert user_site() is not first


def test_a_captured_site_has_its_frames_innermost_first_and_not_without_end():
    def deep(count):
        return deep(count - 1) if count else capture_call_site()

    assert [frame.function for frame in deep(2).frames[:4]] == [
        *["test_a_captured_site_has_its_frames_innermost_first_and_not_without_end.<locals>.deep"] * 3,
        "test_a_captured_site_has_its_frames_innermost_first_and_not_without_end",
    ]
    assert len(deep(2 * MOST_FRAMES).frames) == MOST_FRAMES


def run_as(filename, source, **names):
    linecache.cache[filename] = len(source), None, source.splitlines(True), filename
    exec(compile(source, filename, "exec"), names)
    return names


def test_a_site_in_an_installed_package_leads_on_to_the_programs_line_while_that_is_asked_for():
    installed = "/usr/lib/python3/site-packages/somepackage/layer.py"
    package = run_as(installed, "def layer():\n    return ask()\n", ask=user_site)
    (alone,) = package["layer"]().user_frames()
    assert alone.filename == installed
    with following_libraries():
        site = package["layer"]()
    assert [frame.filename for frame in site.user_frames()] == [installed, __file__]
    assert len(package["layer"]().user_frames()) == 1
