"""Every example of the docstrings and of the README runs, and everything public has a docstring and a type."""

import ast
import doctest
import inspect
import pathlib

import pytest

import umbel

HERE = pathlib.Path(__file__).resolve().parent.parent


def public():
    """Everything that users call, with its name."""
    yield "umbel", umbel
    for name in umbel.__all__:
        thing = getattr(umbel, name)
        if inspect.ismodule(thing):
            yield f"umbel.{name}", thing
            yield from ((f"umbel.{name}.{inner}", getattr(thing, inner)) for inner in thing.__all__)
        elif not isinstance(thing, str):
            yield f"umbel.{name}", thing
        if inspect.isclass(thing):
            inner = ((inner, value) for inner, value in vars(thing).items() if not inner.startswith("_"))
            yield from ((f"umbel.{name}.{inner}", value) for inner, value in inner)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def examples(text, name):
        names = {inner: getattr(umbel, inner) for inner in umbel.__all__} | {"umbel": umbel}
        test = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
        failed, attempted = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
        assert failed == 0, name
        return attempted

    return examples


@pytest.mark.parametrize(("name", "thing"), list(public()), ids=lambda value: value if isinstance(value, str) else "")
def test_docstrings_exist_and_their_examples_run(name, thing, run):
    assert thing.__doc__, f"{name} has no docstring"
    run(thing.__doc__, name)


def test_examples_of_the_readme_run(run):
    readme = HERE / "README.md"
    if not readme.is_file():
        pytest.skip("only in a clone of the repository")
    assert run(readme.read_text(encoding="utf-8"), "README.md") > 10


def test_stubs_name_what_there_is():
    stubs = ast.parse((pathlib.Path(umbel.__file__).parent / "_umbel.pyi").read_text(encoding="utf-8"))
    typed = {node.name: node for node in stubs.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    native = {name for name in dir(umbel._umbel) if not name.startswith("__")}
    dicts = {name for name in typed if name.endswith(("Plan", "Model"))}
    assert set(typed) - dicts == native
    for name, node in typed.items():
        if isinstance(node, ast.ClassDef) and name not in dicts:
            methods = {inner.name for inner in node.body if isinstance(inner, ast.FunctionDef)}
            there = vars(getattr(umbel, name))
            assert {inner for inner in there if not inner.startswith("_")} == {m for m in methods if not m.startswith("_")}
