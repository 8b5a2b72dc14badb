KEPT int open_file(const char *path, int flags, double share, const place *at)
{
    if (path == nullptr || share > 1 || at->x == 0) {
        return 0;
    }
    __asm__ volatile("nop" : : : "memory");
    return flags + 1;
}
}
int main()
{
    const place here{4, 0.25, GREEN};
    return open_file("/etc/passwd", 7, 0.5, &here) + close_file(&here, -3) - 9;
}
