from gradscope.check.formats.paths import below, shown, uri


def test_a_file_beside_the_directory_is_not_below_it():
    assert below("/home/meadow/train.py", "/home/me") is None
    assert shown("/home/meadow/train.py", "/home/me") == "/home/meadow/train.py"


def test_a_name_that_begins_with_two_dots_is_below():
    assert below("/home/me/..data/train.py", "/home/me") == "..data/train.py"


def test_a_notebooks_cell_keeps_its_name():
    assert uri("<ipython-input-1>", "/home/me") == ("%3Cipython-input-1%3E", True)
