"""Runs a command under the system call filter of a systemd unit: syscall-filter.py UNIT COMMAND...

Reads SystemCallFilter= and SystemCallErrorNumber= of the unit, asks systemd-analyze for the members
of groups (@system-service), loads the filter with libseccomp, as systemd does, and becomes the
command. Exit code 77: not possible on this machine.
"""

import ctypes
import errno
import os
import shutil
import subprocess
import sys

ALLOW = 0x7FFF0000
KILL_PROCESS = 0x80000000
ERRNO = 0x00050000
SKIPPED = 77


def values(unit, setting):
    """The values of a setting, which may stand in several lines."""
    with open(unit) as lines:
        return [line.split("=", 1)[1].strip() for line in lines if line.startswith(f"{setting}=")]


def members(name):
    """The system calls of a group and of the groups in it; of another name that name."""
    if not name.startswith("@"):
        return {name}
    asked = ["systemd-analyze", "--no-pager", "syscall-filter", name]
    listed = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    words = [line.strip() for line in listed.splitlines() if line.startswith("    ")]
    return set().union(*(members(word) for word in words if not word.startswith("#")))


def allowed(lines):
    """The system calls that the lines permit, merged as systemd merges them."""
    if not lines or lines[0].startswith("~"):
        sys.exit("only a filter that begins with a list of permitted calls is supported")
    # systemd adds this group to every such list.
    calls = members("@default")
    for line in lines:
        named = set().union(*(members(word) for word in line.removeprefix("~").split()))
        calls = calls - named if line.startswith("~") else calls | named
    return calls


def load(calls, refusal):
    """Permits these system calls to this process and to what it becomes."""
    try:
        seccomp = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    except OSError:
        skip("libseccomp2")
    seccomp.seccomp_init.restype = ctypes.c_void_p
    seccomp.seccomp_init.argtypes = [ctypes.c_uint32]
    seccomp.seccomp_rule_add.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint]
    seccomp.seccomp_load.argtypes = [ctypes.c_void_p]
    # What systemd does not know is missing, as on an older kernel.
    context = seccomp.seccomp_init(ERRNO | errno.ENOSYS)
    for call in sorted(members("@known") | calls):
        number = seccomp.seccomp_syscall_resolve_name(call.encode())
        # Negative: not a system call of this architecture.
        if number >= 0:
            action = ALLOW if call in calls else refusal
            code = seccomp.seccomp_rule_add(context, action, number, 0)
            assert code == 0, f"{call}: {os.strerror(-code)}"
    code = seccomp.seccomp_load(context)
    assert code == 0, f"the filter is refused: {os.strerror(-code)}"


def skip(missing):
    print(f"system call filter: skipped, {missing} is missing", file=sys.stderr)
    sys.exit(SKIPPED)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    unit, command = sys.argv[1], sys.argv[2:]
    if not shutil.which("systemd-analyze"):
        skip("systemd-analyze")
    error = [getattr(errno, name) for name in values(unit, "SystemCallErrorNumber")]
    refusal = ERRNO | error[-1] if error else KILL_PROCESS
    load(allowed(values(unit, "SystemCallFilter")), refusal)
    os.execvp(command[0], command)


main()
