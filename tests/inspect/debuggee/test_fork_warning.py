import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")

PROGRAM = """
import os, threading, warnings
from gradscope.inspect.debuggee.fork_warning import unwarned_forks

warnings.simplefilter("always")
done = threading.Event()
threading.Thread(target=done.wait, name={name!r}).start()

def fork():
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)

with warnings.catch_warnings(record=True) as inside, unwarned_forks():
    fork()
with warnings.catch_warnings(record=True) as outside:
    fork()
done.set()
print(len(inside), len(outside))
"""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python warns of no fork")
@pytest.mark.parametrize(("name", "warned"), [("gradscope-verbs", "0 1"), ("the program's own", "1 1")])
def test_python_warns_of_the_programs_own_threads_alone(name, warned):
    """BLAS's threads count as the program's: there are none."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM.format(name=name)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert (done.stdout, done.stderr) == (f"{warned}\n", "")
