/* Writes its own code over one of its functions. Each line of input is a command: "call" prints the
 * results of both functions, "write" overwrites `replaced`. Ends at the end of its input. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A function that returns 7. */
#ifdef __x86_64__
static const uint8_t code[] = {0xb8, 7, 0, 0, 0, 0xc3}; /* mov $7, %eax; ret */
#else
static const uint8_t code[] = {0xe0, 0, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6}; /* mov w0, #7; ret */
#endif

static volatile int total;

__attribute__((noinline)) static int replaced(int number)
{
    total += number;
    return total > 1 << 20 ? 2 : 1;
}

__attribute__((noinline)) static int kept(int number)
{
    total -= number;
    return total > 1 << 20 ? 4 : 3;
}

static void write_over(void)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t low = (uintptr_t)&replaced & ~(page - 1);
    void *start = (void *)low;
    if (mprotect(start, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        exit(EXIT_FAILURE);
    }
    memcpy((void *)(uintptr_t)&replaced, code, sizeof(code));
    __builtin___clear_cache((char *)(uintptr_t)&replaced, (char *)(uintptr_t)&replaced + page);
    (void)mprotect(start, 2 * page, PROT_READ | PROT_EXEC);
}

int main(void)
{
    char line[16];
    /* volatile, so that the compiler cannot predict the results */
    int (*volatile first)(int) = replaced;
    int (*volatile second)(int) = kept;
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (strcmp(line, "write\n") == 0) {
            write_over();
        }
        printf("%d %d\n", first(1), second(1));
        fflush(stdout);
    }
    return EXIT_SUCCESS;
}
