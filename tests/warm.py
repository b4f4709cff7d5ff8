"""The command `python train.py …` in a process that has torch already: to import it takes a short
run most of its time. A server that has imported it, and nothing of ours, divides itself in two for
each command.

Such a process reads the project's files anew, and has an id, a folder, an environment, files,
signals and an exit code of its own. What a test asks of the start itself (what is imported, what an
environment makes of Python or of a library) needs Python as subprocess starts it.
"""

import contextlib
import multiprocessing
import operator
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
import types
from multiprocessing.reduction import DupFd

ROOT = pathlib.Path(__file__).resolve().parents[1]
TRAIN = ROOT / "train.py"
LIBRARIES = """
    torch torch._dynamo transformers.tokenization_utils_tokenizers safetensors.torch tqdm filelock
    matplotlib.figure matplotlib.backends.backend_agg
""".split()


def main(words, folder, environment, files, new_session):
    """What the new process does."""
    if new_session:
        os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    # where Python looks: beside the program, where the environment says, and for libraries
    told = environment.get("PYTHONPATH", "").split(os.pathsep)
    libraries = [path for path in sys.path if not pathlib.Path(path).is_relative_to(ROOT)]
    sys.path[:] = [str(ROOT), *filter(None, told), *libraries]
    sys.argv = [str(TRAIN), *words]
    runpy.run_path(str(TRAIN), run_name="__main__")


class Handed:
    """An open file, which is its number there when it has come to the new process."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return operator.methodcaller("detach"), (DupFd(self.file.fileno()),)


class Warm:
    """As far as tests need it, what subprocess.Popen is for a command [python, train.py, …]."""

    def __init__(
        self, command, stdin=None, stdout=None, stderr=None, cwd=None, env=None, text=True,
        start_new_session=False,
    ):  # fmt: skip
        assert command[:2] == [sys.executable, str(TRAIN)]
        about = command[2:], str(cwd or os.getcwd()), dict(os.environ if env is None else env)
        self.stdout = None
        with contextlib.ExitStack() as opened:
            nothing = opened.enter_context(open(os.devnull, "r+b"))
            if stdout == subprocess.PIPE:
                read, write = os.pipe()
                self.stdout = open(read, encoding="utf-8")
                stdout = opened.enter_context(open(write, "wb"))
            files = []
            for number, file in enumerate((stdin, stdout, stderr)):
                if file is None:
                    file = open(number, "r+b", buffering=0, closefd=False)
                files.append(nothing if file == subprocess.DEVNULL else file)
            given = [Handed(file) for file in files]
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload(LIBRARIES)
            arguments = (*about, given, start_new_session)
            self.process = context.Process(target=main, args=arguments, daemon=True)
            self.process.start()
        self.pid, self.kill = self.process.pid, self.process.kill
        self.terminate = self.process.terminate

    @property
    def returncode(self):
        return self.process.exitcode

    def poll(self):
        return self.returncode

    def wait(self):
        self.process.join()
        return self.returncode

    def send_signal(self, number):
        os.kill(self.pid, number)


# where processes cannot be divided, or not with such libraries, they start as ever
Popen = Warm if sys.platform == "linux" else subprocess.Popen


def run(words, **options):
    """Run the command to its end → as subprocess.run() has it, with what it printed as text."""
    command = [sys.executable, str(TRAIN), *words]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        code = Popen(command, stdout=out, stderr=err, **options).wait()
        out.seek(0), err.seek(0)
        return subprocess.CompletedProcess(command, code, out.read(), err.read())


def start_cells(monkeypatch):
    """Let grids start their runs so."""
    how = types.SimpleNamespace(Popen=Popen, DEVNULL=subprocess.DEVNULL)
    monkeypatch.setattr("minidepth_lab.sweep.cell.subprocess", how)
