"""An attach that is not possible is refused with the reason and the remedy, and leaves the process unchanged."""
import os
import pwd
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import (Target, attach, check_same, code_bytes, copy_for_all_users, look,
                       mappings, start_attach, wait_until_recorded)
from sojourn_testing import PATIENCE_S, SAMPLES, check, children, json_rows, main, wait_for


def refused(sojourn, pid, words, code=1):
    done, summary = attach(sojourn, pid, sojourn.path("refused.db"))
    check(done.returncode == code and summary is None, f"{pid} was not refused: {done}")
    for word in words:
        check(word in done.stderr, f"{pid}: {word!r} is missing in {done.stderr!r}")
    check(not os.path.exists(sojourn.path("refused.db")), "a refused attach made a database")


def state(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return next(line.split()[1] for line in file if line.startswith("State:"))


def refuse_untouched(sojourn, pid, words):
    # The process may still be starting.
    wait_for(f"process {pid} waits", lambda: state(pid) == "S" and look(pid) == look(pid))
    before, code = look(pid), code_bytes(pid)
    refused(sojourn, pid, words)
    check_same(before, look(pid), code, code_bytes(pid), f"in {pid} after a refusal")


def test_recorder_of_another_user(sojourn):
    """A user may read the process but may not signal its recorder, which belongs to another user."""
    capabilities = "+sys_ptrace,+dac_override"
    as_nobody = ["setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=" + capabilities,
                 "--ambient-caps=" + capabilities]
    other = subprocess.Popen(["sleep", "600"])
    recorder = start_attach(sojourn, other.pid, sojourn.path("roots.db"))
    done = subprocess.run([*as_nobody, copy_for_all_users(sojourn), "detach", str(other.pid)],
                          capture_output=True, text=True)
    check(done.returncode == 1 and "belongs to another user" in done.stderr and
          f"process {recorder.pid}" in done.stderr, f"a recorder of another user: {done}")
    recorder.terminate()
    check(recorder.wait(PATIENCE_S) == 0, "the recorder ends")
    other.kill()
    other.wait()


def test_foreign_program(sojourn):
    """Tests a program for i386 that only waits: 84 bytes of headers, `mov $29, %eax; int $0x80`."""
    code = b"\xb8\x1d\x00\x00\x00\xcd\x80\xeb\xf7"
    head = struct.pack("<16sHHIIIIIHHHHHH", b"\x7fELF\x01\x01\x01", 2, 3, 1, 0x8048054, 52, 0, 0, 52,
                       32, 1, 0, 0, 0)
    segment = struct.pack("<IIIIIIII", 1, 0, 0x8048000, 0x8048000, 84 + len(code), 84 + len(code), 5,
                          0x1000)
    path = sojourn.path("waits-32")
    with open(path, "wb") as file:
        file.write(head + segment + code)
    os.chmod(path, 0o755)
    try:
        other = subprocess.Popen([path])
    except OSError as error:
        print(f"no program for i386 runs here ({error}); the unit test agent.attach.attach_check has its sentence")
        return
    refuse_untouched(sojourn, other.pid, ["another machine"])
    other.kill()
    other.wait()


def wait_for_state(pid, wanted):
    wait_for(lambda: f"{pid} is in state {state(pid)}, not {wanted}", lambda: state(pid) == wanted)


STATE_MAGIC = 0x45544154534a53


def set_version(pid, version):
    """Writes the version of the agent in a process. Returns the previous one."""
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for low, high, protection, path in mappings(pid):
            if "libsojourn-agent" in path and "w" in protection:
                memory.seek(low)
                at = memory.read(high - low).find(struct.pack("<Q", STATE_MAGIC))
                if at >= 0:
                    memory.seek(low + at + 8)
                    before = struct.unpack("<I", memory.read(4))[0]
                    memory.seek(low + at + 8)
                    memory.write(struct.pack("<I", version))
                    return before
    check(False, "the agent's state was not found")
    return None


def test_other_version(sojourn, sample):
    """An agent of another version is reported, and its code and memory are not changed."""
    target = Target([sample]).ready()
    before, code = look(target.pid), code_bytes(target.pid)
    recorder = start_attach(sojourn, target.pid, sojourn.path("version.db"))
    recorder.kill()
    recorder.wait()
    version = set_version(target.pid, 999)
    hooked = code_bytes(target.pid)
    refused(sojourn, target.pid, ["another version of Sojourn", "sojourn detach"])
    done = sojourn.run(["detach", str(target.pid)], capture_output=True, text=True)
    check(done.returncode == 1 and "another version" in done.stderr, f"{done}")
    check(code_bytes(target.pid) == hooked, "its text has been changed")
    set_version(target.pid, version)
    done = sojourn.run(["detach", str(target.pid)], capture_output=True, text=True)
    check(done.returncode == 0, f"{done}")
    check_same(before, look(target.pid), code, code_bytes(target.pid), "in the end")
    status, output = target.finish()
    check(status == 0 and "mistakes 0" in output, f"it ends with {status}: {output}")


def fill_backlog(session):
    """Connects to the control socket of a session until it accepts no more. Returns the connections."""
    with open("/proc/net/unix", encoding="utf-8") as file:
        path = re.search(rf"\S+/{session}/control$", file.read(), re.M).group()
    waiting = []
    while True:
        one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        one.setblocking(False)
        waiting.append(one)
        if one.connect_ex(path) != 0:
            return waiting


def test_silent_recorder(sojourn, target, recorder):
    """A stopped recorder accepts no more connections. Commands do not wait for it, and do not consider it dead."""
    session = re.search(r"as session (\w+)", attach(sojourn, target.pid, sojourn.path("refused.db"))[0].stderr).group(1)
    recorder.send_signal(signal.SIGSTOP)
    wait_for_state(recorder.pid, "T")
    waiting = fill_backlog(session)
    try:
        refused(sojourn, target.pid, ["recorded already", f"as session {session}", "does not answer", "kill -CONT"])
        listed = sojourn.run(["ps", "--recorded"], capture_output=True, text=True, timeout=PATIENCE_S)
        check(re.search(rf"^ *{target.pid} .*recorded: session {session[:8]}, by a recorder that does not answer",
                        listed.stdout, re.M), f"ps: {listed}")
        done = sojourn.run(["detach", str(target.pid)], capture_output=True, text=True, timeout=PATIENCE_S)
        check(done.returncode == 1 and "does not answer" in done.stderr, f"detach: {done}")
    finally:
        recorder.send_signal(signal.SIGCONT)
        for one in waiting:
            one.close()


def test_names(sojourn, sample):
    """A process is named by its program, its number is needed where two have the name, and ps shows whose it is."""
    program = sojourn.path(f"a-named-target-{os.getpid()}")  # longer than the kernel's 15 bytes
    name = os.path.basename(program)
    shutil.copy(sample, program)
    refused(sojourn, name, [f'no process is named "{name}"', "sojourn ps"], code=3)
    one = Target([program]).ready()
    recorder = subprocess.Popen([sojourn.program, "attach", "--quiet", "-o", sojourn.path("named.db"), name],
                                env=sojourn.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until_recorded(sojourn, one.pid, recorder)
    done = sojourn.run(["policy", "set", "--function", "nothing_of_it", name], capture_output=True, text=True)
    check(done.returncode == 0, f"policy set by name: {done}")
    done = sojourn.run(["detach", name], capture_output=True, text=True)
    check(done.returncode == 0 and f"process {one.pid} is left" in done.stdout, f"detach by name: {done}")
    check(recorder.wait(PATIENCE_S) == 0, f"the recorder: {recorder.communicate()}")
    two = Target([program]).ready()
    refused(sojourn, name, [f"2 processes are named \"{name}\"", str(one.pid), str(two.pid)], code=2)
    refused(sojourn, "0", ["not the number of a process"], code=2)
    rows = {row["pid"]: row for row in json_rows(sojourn.run(["ps", "--all", "--json"], check=True, capture_output=True,
                                                             text=True).stdout)}
    check(rows[one.pid]["user"] == pwd.getpwuid(os.getuid()).pw_name and
          rows[one.pid]["command"].split()[0] == program, f"{rows[one.pid]}")
    shown = sojourn.run(["ps"], check=True, capture_output=True, text=True).stdout
    check(any(line.split()[0] == str(two.pid) and line.split()[1] == rows[two.pid]["user"] and
              program[:40] in line for line in shown.splitlines()), shown)
    for target in (one, two):
        code, output = target.finish()
        check(code == 0 and "mistakes 0" in output, f"{code}, {output}")


def attach_to_pretended_kernel_thread(sojourn, pid, is_kernel):
    """Returns what `ps` and `attach` say of a process if the kernel described it as one of its own threads. The files
    that say so lie over those of the process, for these commands only. Containers hide the kernel's own threads."""
    folder = sojourn.path(f"kernel{is_kernel:d}")
    os.makedirs(os.path.join(folder, f"task/{pid}"))
    for name in ("status", "stat", "cmdline"):
        with open(f"/proc/{pid}/{name}", "rb") as file:
            content = file.read()
        if name == "stat":
            begin, end = content.split(b") ")
            words = end.split(b" ")
            words[6] = str(int(words[6]) | 0x200000 * is_kernel).encode()  # PF_KTHREAD
            content = begin + b") " + b" ".join(words)
        for path in (name, f"task/{pid}/{name}"):
            with open(os.path.join(folder, path), "wb") as file:
                file.write(content)
    script = f"mount --bind {folder} /proc/{pid}; {sojourn.program} ps --all --json; {sojourn.program} attach {pid}"
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], env=sojourn.environment, capture_output=True, text=True,
                          check=False)
    return [row["pid"] for row in json_rows(done.stdout)], done.stderr


def test_kernel(sojourn):
    """Threads of the kernel are not listed, and cannot be attached to."""
    process = subprocess.Popen(["sleep", "1000"])
    try:
        listed, said = attach_to_pretended_kernel_thread(sojourn, process.pid, False)
        check(process.pid in listed and "kernel" not in said, f"a process: {listed} {said}")
        listed, said = attach_to_pretended_kernel_thread(sojourn, process.pid, True)
        check(listed and process.pid not in listed and "kernel" in said, f"a thread of the kernel: {listed} {said}")
    finally:
        process.kill()
        process.wait()


def test(sojourn, arguments):
    test_kernel(sojourn)
    sample, static, emulated = arguments
    test_names(sojourn, sample)
    refused(sojourn, 4190000, ["no process", "sojourn ps"], code=3)
    refused(sojourn, 1, ["PID 1 (init)"])

    zombie = subprocess.Popen(["true"])
    wait_for_state(zombie.pid, "Z")
    refused(sojourn, zombie.pid, ["ended"], code=3)
    zombie.wait()

    itself = subprocess.run(["sh", "-c", f"exec {sojourn.program} attach -o /tmp/never.db $$"],
                            capture_output=True, text=True, env=sojourn.environment, check=False)
    check(itself.returncode == 1 and "attach to itself" in itself.stderr, f"itself: {itself}")

    target = Target([sample]).ready()
    thread = next(int(tid) for tid in os.listdir(f"/proc/{target.pid}/task")
                  if int(tid) != target.pid)
    refused(sojourn, thread, ["a thread of process", f"sojourn attach {target.pid}"])
    before, code = look(target.pid), code_bytes(target.pid)
    target.process.send_signal(signal.SIGSTOP)
    wait_for_state(target.pid, "T")
    refused(sojourn, target.pid, ["stopped", f"kill -CONT {target.pid}"])
    target.process.send_signal(signal.SIGCONT)

    debugger = subprocess.Popen(["gdb", "-q", "-nx", "-p", str(target.pid)], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_for_state(target.pid, "t")
    refused(sojourn, target.pid, [f"process {debugger.pid} (gdb)"])
    debugger.communicate(b"detach\nquit\n", timeout=PATIENCE_S)
    check_same(before, look(target.pid), code, code_bytes(target.pid), "after refusals")

    first = start_attach(sojourn, target.pid, sojourn.path("first.db"))
    refused(sojourn, target.pid, ["recorded already", f"by process {first.pid}",
                                  f"sojourn detach {target.pid}"])
    test_silent_recorder(sojourn, target, first)
    done = sojourn.run(["detach", str(target.pid)], capture_output=True, text=True)
    check(done.returncode == 0 and "is left" in done.stdout, f"detach: {done}")
    check(first.wait(PATIENCE_S) == 0, f"the first recorder: {first.communicate()}")
    check_same(before, look(target.pid), code, code_bytes(target.pid), "after detach")
    done = sojourn.run(["detach", str(target.pid)], capture_output=True, text=True)
    check(done.returncode == 0 and "not recorded" in done.stdout, f"detach twice: {done}")

    done = subprocess.run(["gdb", "-q", "-nx", "-batch", "-p", str(target.pid), "-ex",
                           "thread apply all bt 3"], capture_output=True, text=True, timeout=PATIENCE_S)
    check("target_" in done.stdout, f"gdb after detach: {done.stdout[-600:]}")
    code, output = target.finish()
    check(code == 0 and "mistakes 0" in output, f"the target: {code}, {output}")

    for command, words in (
        ([static, "wait"], ["statically linked"]),
        ([sys.executable, os.path.join(SAMPLES, "attach/confined.py")], ["seccomp", "sojourn record"]),
    ):
        other = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE)
        check(other.stdout.readline() != b"", f"{command} did not start")
        refuse_untouched(sojourn, other.pid, words)
        other.kill()
        other.communicate()

    # The emulator waits for a debugger at its socket before it runs the program.
    other = subprocess.Popen(["qemu-aarch64", "-g", sojourn.path("gdb"), "-L",
                              "/usr/aarch64-linux-gnu", emulated])
    wait_for("the emulator listens", lambda: os.path.exists(sojourn.path("gdb")))
    refuse_untouched(sojourn, other.pid, ["is an emulator", "sojourn record"])
    other.kill()
    other.wait()

    hide = f"mount -t tmpfs tmpfs {os.path.join(os.path.dirname(sojourn.program), '../lib')}"
    other = subprocess.Popen(["unshare", "-pmf", "--mount-proc", "sh", "-c", f"{hide}; {sample}; true"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    check(other.stdout.readline() == "ready\n", "the namespaced target did not start")
    first = children(other.pid)[0]
    refuse_untouched(sojourn, first, ["does not see the agent's file", "inside of it, where it is process 1"])
    refuse_untouched(sojourn, wait_for("the target", lambda: children(first))[0], ["does not see the agent's file"])
    output, _ = other.communicate(timeout=PATIENCE_S)
    check("mistakes 0" in output, f"the namespaced target: {output}")
    test_foreign_program(sojourn)
    test_other_version(sojourn, sample)

    other = subprocess.Popen(["sleep", "600"])
    os.chmod(sojourn.folder, 0o755)
    done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups",
                           copy_for_all_users(sojourn), "attach",
                           "-o", "/tmp/never.db", str(other.pid)], capture_output=True, text=True)
    check(done.returncode == 1 and "belongs to user" in done.stderr, f"another user: {done}")
    other.kill()
    other.wait()
    test_recorder_of_another_user(sojourn)



main(test)
