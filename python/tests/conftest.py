"""What the tests share: the four kinds of filters, and the `umbel` command if there is one."""

import os
import pathlib
import subprocess

import pytest

import umbel

KINDS = {
    "standard": umbel.StandardFilter,
    "blocked": umbel.BlockedFilter,
    "counting": umbel.CountingFilter,
    "dynamic": umbel.DynamicFilter,
}

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "crates/umbel/tests/golden/v1"


@pytest.fixture(params=list(KINDS))
def kind(request):
    """The name of each kind in turn."""
    return request.param


@pytest.fixture
def make(kind):
    """The class of each kind in turn."""
    return KINDS[kind]


@pytest.fixture
def command():
    """Runs the `umbel` command that UMBEL_BINARY names."""
    binary = os.environ.get("UMBEL_BINARY")
    if not binary:
        pytest.skip("UMBEL_BINARY does not name the umbel command")

    def run(*arguments, keys=()):
        words = [binary, *(str(argument) for argument in arguments)]
        lines = "".join(f"{key}\n" for key in keys)
        done = subprocess.run(words, input=lines, capture_output=True, text=True, timeout=60)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    return run
