/* Calls leaf() until the file that its first argument names exists. Then it writes the number of
 * these calls into the file that its second argument names. */
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) static unsigned long leaf(unsigned long calls)
{
    __asm__ volatile("");
    return calls + 1;
}

int main(int count, char **arguments)
{
    unsigned long calls = 0;
    if (count != 3) {
        return 2;
    }
    while (access(arguments[1], F_OK) != 0) {
        for (int i = 0; i < 100; i++) {
            calls = leaf(calls);
        }
        usleep(10 * 1000);
    }
    FILE *file = fopen(arguments[2], "w");
    return file && fprintf(file, "%lu\n", calls) > 0 && fclose(file) == 0 ? 0 : 1;
}
