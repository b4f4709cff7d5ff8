"""The commands `python train.py …` and `python -m mkdocs …` in a process that has their libraries
already: to import these takes a short run most of its time. For each of the two there is a server
that has imported them, and nothing of ours, and divides itself in two for each command.

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
import threading
import types
from multiprocessing import forkserver
from multiprocessing.reduction import DupFd
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[1]
TRAIN = ROOT / "train.py"
LIBRARIES = """
    torch torch._dynamo transformers.tokenization_utils_tokenizers safetensors.torch tqdm filelock
    matplotlib.figure matplotlib.backends.backend_agg
""".split()
LIBRARIES_OF_MKDOCS = """
    mkdocs.__main__ mkdocs.commands.build material.plugins.search.plugin mkdocs_jupyter.plugin
    mkdocstrings_handlers.python bs4.builder bs4.builder._htmlparser concurrent.futures.thread
""".split()
TRAINS, BUILDS = (
    ("-m", "minidepth_lab.command"),
    ("-m", "mkdocs"),
)  # what such commands begin with, after Python
SERVERS = {TRAINS: forkserver.ForkServer(), BUILDS: forkserver.ForkServer()}
SERVERS[TRAINS].set_forkserver_preload(LIBRARIES)
SERVERS[BUILDS].set_forkserver_preload(LIBRARIES_OF_MKDOCS)
ONE = threading.Lock()  # at a time: multiprocessing knows a single server, and is lent ours


def main(program, words, folder, environment, files, new_session):
    """What the new process does."""
    # it may have children, as if subprocess had started it
    multiprocessing.current_process()._config["daemon"] = False
    if new_session:
        os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    # where Python looks: beside the program, or here for a module; where the environment says; and
    # for libraries
    told = environment.get("PYTHONPATH", "").split(os.pathsep)
    ours = [
        str(ROOT),
        str(ROOT / "docs" / "site"),
        str(ROOT / "tests"),
    ]  # an environment may lie in it
    libraries = [path for path in sys.path if path not in ours]
    first = str(ROOT) if program == TRAINS else folder
    sys.path[:] = [first, *filter(None, told), *libraries]
    sys.argv = [program[-1], *words]
    runpy.run_module(program[-1], run_name="__main__", alter_sys=True)


class Handed:
    """An open file, which is its number there when it has come to the new process."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return operator.methodcaller("detach"), (DupFd(self.file.fileno()),)


class Warm:
    """As far as tests need it, what subprocess.Popen is for a command that begins with one of
    SERVERS."""

    def __init__(
        self, command, stdin=None, stdout=None, stderr=None, cwd=None, env=None, text=True,
        start_new_session=False,
    ):  # fmt: skip
        assert command[0] == sys.executable
        if command[1] == str(TRAIN):  # train.py hands all of it to this module
            command = [command[0], *TRAINS, *command[2:]]
        (program,) = (each for each in SERVERS if command[1 : 1 + len(each)] == [*each])
        about = program, command[1 + len(program) :], str(cwd or os.getcwd())
        environment = dict(os.environ if env is None else env)
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
            arguments = (*about, environment, given, start_new_session)
            self.process = context.Process(target=main, args=arguments, daemon=True)
            divide = SERVERS[program].connect_to_new_process
            with ONE, mock.patch.object(forkserver, "connect_to_new_process", divide):
                self.process.start()
        self.pid, self.kill = self.process.pid, self.process.kill
        self.terminate = self.process.terminate

    @property
    def returncode(self):
        return self.process.exitcode

    def poll(self):
        return self.returncode

    def wait(self, timeout=None):
        self.process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("the command", timeout)
        return self.returncode

    def send_signal(self, number):
        os.kill(self.pid, number)


# where processes cannot be divided, or not with such libraries, they start as ever
Popen = Warm if sys.platform == "linux" else subprocess.Popen


def run(words, program=TRAINS, **options):
    """Run the command to its end → as subprocess.run() has it, with what it printed as text."""
    command = [sys.executable, *program, *words]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        code = Popen(command, stdout=out, stderr=err, **options).wait()
        out.seek(0), err.seek(0)
        return subprocess.CompletedProcess(command, code, out.read(), err.read())


def start_cells(monkeypatch):
    """Let grids start their runs so."""
    how = types.SimpleNamespace(Popen=Popen, DEVNULL=subprocess.DEVNULL)
    monkeypatch.setattr("minidepth_lab.measure.cell.subprocess", how)
