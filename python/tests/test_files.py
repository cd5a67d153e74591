"""Files: the same bytes as the command's, complete or not there, and nothing else overwritten."""

import os
import pathlib

import pytest

import umbel
from conftest import GOLDEN

KEYS = [f"key {number}" for number in range(300)]


def test_a_saved_filter_is_read_as_it_was(make, tmp_path):
    filter = make(1000, 0.01, seed=42)
    filter.add_many(KEYS)
    for path in (tmp_path / "f.umbel", str(tmp_path / "s.umbel"), os.fsencode(tmp_path / "b.umbel")):
        filter.save(path)
        assert umbel.load(path) == filter
        assert pathlib.Path(os.fsdecode(path)).read_bytes() == filter.to_bytes()
    assert sorted(os.listdir(tmp_path)) == ["b.umbel", "f.umbel", "s.umbel"]


@pytest.mark.parametrize(
    "options", [[], ["--seed", "42"], ["--hash", "siphash-1-3"]], ids=["plain", "seed", "siphash"]
)
def test_python_and_the_command_write_the_same_bytes(kind, make, options, command, tmp_path):
    theirs, ours = tmp_path / "theirs.umbel", tmp_path / "ours.umbel"
    command("filter", "build", "--kind", kind, "--items", 200, "--false-positive", 0.01, *options, "-o", theirs, keys=KEYS)
    keywords = {"seed": 42} if "--seed" in options else {}
    keywords |= {"hash": "siphash-1-3"} if "--hash" in options else {}
    filter = make(200, 0.01, **keywords)
    filter.add_many(KEYS)
    filter.save(ours)
    assert ours.read_bytes() == theirs.read_bytes()


def test_each_goes_on_with_the_other_ones_file(kind, make, command, tmp_path):
    path = tmp_path / "f.umbel"
    filter = make(1000, 0.001)
    filter.add_many(KEYS)
    filter.save(path)
    command("filter", "add", path, keys=["from the command"])
    assert command("filter", "query", path, keys=["key 7", "nobody's"]) == "key 7\n"
    filter = umbel.load(path)
    assert "from the command" in filter and len(filter) == len(KEYS) + 1
    if kind in ("counting", "dynamic"):
        command("filter", "remove", path, keys=["key 7"])
        assert "key 7" not in umbel.load(path)


def test_a_secret_is_the_contents_of_the_seed_file(command, tmp_path):
    secret, path = tmp_path / "secret", tmp_path / "s.umbel"
    secret.write_bytes(b"only for us\n")
    target = ["--items", 200, "--false-positive", 0.01]
    command("filter", "build", *target, "--seed-file", secret, "-o", path, keys=KEYS)
    filter = umbel.StandardFilter(200, 0.01, secret=secret.read_bytes())
    filter.add_many(KEYS)
    assert path.read_bytes() == filter.to_bytes()


@pytest.mark.skipif(not GOLDEN.is_dir(), reason="only in a clone of the repository")
def test_files_of_this_format_are_read_and_written_as_they_are():
    known = {"UMBL\x01" + chr(code) for code in range(1, 6)}
    names = [path for path in sorted(GOLDEN.glob("*.umbel")) if path.read_bytes()[:6].decode("latin-1") in known]
    assert len(names) > 10
    for path in names:
        if path.name.startswith("secret"):
            with pytest.raises(ValueError, match="made with a secret seed"):
                umbel.load(path)
        else:
            assert umbel.load(path).to_bytes() == path.read_bytes(), path.name


@pytest.mark.skipif(not GOLDEN.is_dir(), reason="only in a clone of the repository")
def test_plain_components_are_read_and_cannot_remove():
    filter = umbel.load(GOLDEN / "plain-dynamic.umbel")
    assert type(filter) is umbel.DynamicFilter and filter.components > 0
    for call in (lambda: filter.remove("apple"), lambda: filter.remove_many(["apple"])):
        with pytest.raises(ValueError, match="plain components, which cannot remove keys"):
            call()


def test_damaged_bytes_are_value_errors(make):
    data = make(100, 0.01).to_bytes()
    for length in range(len(data)):
        with pytest.raises(ValueError):
            umbel.from_bytes(data[:length])
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1
        with pytest.raises(ValueError):
            umbel.from_bytes(bytes(damaged))


def test_memory_is_limited():
    data = umbel.StandardFilter(bits=2**33, hashes=7).to_bytes()
    assert len(data) < 1000
    with pytest.raises(ValueError, match="the limit is 268435456: max_memory= sets another"):
        umbel.from_bytes(data)
    with pytest.raises(ValueError, match="the limit is 1000"):
        umbel.from_bytes(umbel.StandardFilter(10_000, 0.01).to_bytes(), max_memory=1000)


def test_only_filters_are_replaced(make, tmp_path):
    path = tmp_path / "f.umbel"
    filter = make(100, 0.01)
    path.write_text("keys that somebody needs\n")
    with pytest.raises(FileExistsError, match="is not a filter: it is not overwritten"):
        filter.save(path)
    assert path.read_text() == "keys that somebody needs\n"
    path.write_bytes(b"UMBL\x01\x10 a delta")
    with pytest.raises(FileExistsError):
        filter.save(path)
    path.write_bytes(b"")
    path.chmod(0o640)
    filter.save(path)
    filter.add("apple")
    filter.save(path)
    mask = os.umask(0o027)
    filter.save(tmp_path / "new.umbel")
    os.umask(mask)
    assert (tmp_path / "new.umbel").stat().st_mode & 0o777 == 0o640
    (tmp_path / "new.umbel").unlink()
    assert umbel.load(path) == filter and path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["f.umbel"]


def test_links_stay_links(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "f.umbel")
    umbel.StandardFilter(100, 0.01).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "f.umbel").is_file()


def test_files_that_cannot_be_opened_are_os_errors(tmp_path):
    filter = umbel.StandardFilter(100, 0.01)
    with pytest.raises(FileNotFoundError):
        umbel.load(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        filter.save(tmp_path / "no" / "directory")
    with pytest.raises(IsADirectoryError):
        umbel.load(tmp_path)
    with pytest.raises(IsADirectoryError):
        filter.save(tmp_path)
    with pytest.raises(TypeError):
        umbel.load(3.5)
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_leaves_no_file(tmp_path, monkeypatch):
    from umbel import _files

    def full(handle, mode):
        os.close(handle)
        return open("/dev/full", mode, buffering=0)

    filter, path = umbel.StandardFilter(100, 0.01), tmp_path / "f.umbel"
    filter.save(path)
    before = path.read_bytes()
    filter.add("apple")
    monkeypatch.setattr(_files.os, "fdopen", full)
    with pytest.raises(OSError, match="No space left"):
        filter.save(path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["f.umbel"]
