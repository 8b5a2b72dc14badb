import ctypes, os, sys
PTRACE_SEIZE = 0x4206
libc = ctypes.CDLL(None, use_errno=True)
for tid in os.listdir(f"/proc/{sys.argv[1]}/task"):
    if libc.ptrace(PTRACE_SEIZE, int(tid), None, None) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
print("seized", flush=True)
sys.stdin.read()
