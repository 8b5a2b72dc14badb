// A program for exports: recursion, and a function whose name has characters that XML escapes.
template <class T> __attribute__((noinline)) int leaf(T &n)
{
    asm volatile("" ::: "memory");
    return n + 1;
}

__attribute__((noinline)) int work(int n)
{
    int m = leaf<int>(n);
    return n == 0 ? m : work(n - 1) + m;
}

int main(int argc, char **)
{
    int sum = 0;
    for (int i = 0; i < 50; i++) {
        sum += work(argc + 3);
    }
    return sum == 7;
}
