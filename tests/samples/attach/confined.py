"""Confines itself by a filter that allows everything: what counts is that there is one."""
import ctypes, struct, time
program = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("program", ctypes.c_void_p)]
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, ctypes.byref(Filter(1, ctypes.addressof(program))), 0, 0) == 0
print("ready", flush=True)
time.sleep(600)
