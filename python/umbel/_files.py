"""Filter files: written completely or not at all, and only in place of other filters, as ``umbel filter`` does it."""

import os
import secrets
import stat

#: The first bytes of every umbel file; the kind is the byte after the version (docs/wire.md).
_MAGIC = b"UMBL"
_KIND = 5
_FILTERS = range(0x01, 0x10)


def read(path):
    """The bytes of a file."""
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    """Writes a file beside its place, then renames it. A reader sees the old file or the new one."""
    # A link stays a link: the file that it names is replaced.
    path = os.path.realpath(os.fsdecode(path))
    mode = _mode_of_replaced(path)
    directory = os.path.dirname(path)
    temporary = os.path.join(directory, f".umbel-{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # The system takes away what the umask forbids.
    handle = os.open(temporary, flags, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None:
                os.chmod(temporary, mode)
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    _sync_directory(directory)


def _mode_of_replaced(path):
    """The permissions of the filter that is there, if any. Refuses to replace another file."""
    try:
        with open(path, "rb") as file:
            start = file.read(_KIND + 1)
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    except FileNotFoundError:
        return None
    if start and not (start.startswith(_MAGIC) and start[_KIND:] and start[_KIND] in _FILTERS):
        raise FileExistsError(f"{path}: the file is there already and is not a filter: it is not overwritten")
    return mode


def _sync_directory(directory):
    """Best effort: the file is complete and in place. If a power loss undoes the rename, the old file is there."""
    try:
        handle = os.open(directory, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
