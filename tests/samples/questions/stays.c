/* Stays in its last call until its input ends. */
#include <unistd.h>

__attribute__((noinline)) static void inner(int x)
{
    if (x == 5000) {
        char c;
        (void)!read(0, &c, 1);
    }
}

__attribute__((noinline)) static void outer(void)
{
    for (int i = 0; i <= 5000; i++) {
        inner(i);
    }
}

int main(void)
{
    outer();
    return 0;
}
