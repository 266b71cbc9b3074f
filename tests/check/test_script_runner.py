import os
import sys
import threading
import warnings

import pytest

from gradscope.check import run_script
from gradscope.inspect.debuggee.program import print_uncaught


@pytest.fixture
def script(tmp_path):
    def write(source):
        path = tmp_path / "script.py"
        path.write_text(source)
        return str(path)

    return write


def test_it_is_main_with_its_own_arguments(script, capsys):
    path = script(
        "import __main__, os, sys\n"
        "print(__name__, sys.argv[1:], sys.path[0] == os.path.dirname(__file__), __main__.__dict__ is globals())\n"
    )
    before = sys.argv, sys.path[:], sys.modules["__main__"]
    result = run_script(path, ["--lr", "0.1"])
    assert capsys.readouterr().out == "__main__ ['--lr', '0.1'] True True\n"
    assert (result.error, result.exit_code, result.arguments) == (None, 0, ("--lr", "0.1"))
    assert (sys.argv, sys.path, sys.modules["__main__"]) == before


def test_argv_0_is_the_path_as_given(script, capsys, monkeypatch):
    path = script("import sys\nprint(sys.argv[0])\n")
    monkeypatch.chdir(os.path.dirname(path))
    run_script("script.py")
    assert capsys.readouterr().out == "script.py\n"


def test_a_module_beside_the_script_is_found(script, tmp_path, monkeypatch):
    (tmp_path / "beside_the_script.py").write_text("value = 7\n")
    result = run_script(script("import beside_the_script\nassert beside_the_script.value == 7\n"))
    monkeypatch.delitem(sys.modules, "beside_the_script")
    assert result.error is None


@pytest.mark.parametrize(
    ("call", "code", "text"),
    [
        ("sys.exit()", 0, ""),
        ("sys.exit(0)", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit('no data')", 1, "no data\n"),
        ("raise SystemExit", 0, ""),
    ],
)
def test_exit(script, capsys, call, code, text):
    result = run_script(script(f"import sys\n{call}\n"))
    assert (result.error, result.exit_code) == (None, code)
    assert capsys.readouterr().err == text


def test_an_exception_is_handed_back_and_printed_without_our_frames(script, capsys):
    path = script("def f():\n    raise ValueError('no data')\n\nf()\n")
    result = run_script(path)
    assert (type(result.error), result.exit_code) == (ValueError, 1)
    print_uncaught(result.error)
    lines = capsys.readouterr().err.splitlines()
    assert [line.strip() for line in lines if "File" in line] == [
        f'File "{path}", line 4, in <module>',
        f'File "{path}", line 2, in f',
    ]
    assert lines[-1] == "ValueError: no data"


def test_a_syntax_error_is_the_scripts(script, capsys):
    result = run_script(script("x = = 1\n"))
    print_uncaught(result.error)
    assert isinstance(result.error, SyntaxError)
    assert "runner.py" not in capsys.readouterr().err


def test_the_scripts_own_hook_prints(script, capsys, monkeypatch):
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    result = run_script(
        script("import sys\nsys.excepthook = lambda kind, error, trace: print('hook', error)\nraise ValueError('x')\n")
    )
    print_uncaught(result.error)
    assert capsys.readouterr().out == "hook x\n"


def test_a_hook_that_fails_hides_nothing(script, capsys, monkeypatch):
    monkeypatch.setattr(sys, "excepthook", lambda *facts: 1 / 0)
    print_uncaught(run_script(script("raise ValueError('no data')\n")).error)
    assert "ValueError: no data" in capsys.readouterr().err


def test_threads_are_waited_for(script):
    path = script(
        "import threading, time\n"
        "done = []\n"
        "threading.Thread(target=lambda: (time.sleep(0.05), done.append(1))).start()\n"
        "import __main__\n"
        "threading.kept_for_the_test = done\n"
    )
    run_script(path)
    done = threading.__dict__.pop("kept_for_the_test")
    assert done == [1]


def test_it_shares_no_future_imports(script):
    # From Python 3.14 on annotations are evaluated when somebody asks.
    path = script("def f(x: undefined_name = 0): ...\nf.__annotations__\n")
    assert isinstance(run_script(path).error, NameError)


def test_warnings_are_attributed_to_main(script):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        path = script("import warnings\nwarnings.warn('careful')\n")
        run_script(path)
    assert [(w.filename, w.lineno) for w in caught] == [(path, 2)]


def test_a_file_that_is_not_there():
    with pytest.raises(FileNotFoundError):
        run_script("not_there.py")
