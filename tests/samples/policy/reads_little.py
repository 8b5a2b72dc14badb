"""Reads a file in parts, by one descriptor, and says whether the parts are the whole."""
import os
import sys

fd = os.dup2(os.open(sys.argv[1], os.O_RDONLY), 77)
got = b""
while part := os.read(fd, 100):
    got += part
os.lseek(fd, 0, os.SEEK_SET)
print(got == open(fd, "rb", buffering=0).read(), len(got))
