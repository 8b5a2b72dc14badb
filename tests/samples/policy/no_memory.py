"""Counts how many of its blocks it does not get."""
failed = 0
for i in range(20):
    try:
        b"x" * (5_000_000 + i)
    except MemoryError:
        failed += 1
print(failed)
