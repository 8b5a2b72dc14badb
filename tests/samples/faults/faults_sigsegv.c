/* For each line of input, causes faults that libsigsegv handles, and prints which were handled.
 * They are reads of pages that a handler makes readable, writes to pages that it makes writable,
 * and stack overflows. */
#include <setjmp.h>
#include <sigsegv.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define NOINLINE __attribute__((noipa))
#define PAGE ((size_t)4096)

static sigjmp_buf place;
static int handled;
static char extra_stack[65536];
static char *page;

static int on_fault(void *address, int serious)
{
    (void)serious;
    if ((char *)address < page || (char *)address >= page + PAGE)
        return 0;
    handled++;
    return mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0;
}

static void leave(void *a, void *b, void *c)
{
    (void)a;
    (void)b;
    (void)c;
    siglongjmp(place, 1);
}

static void on_overflow(int emergency, stackoverflow_context_t context)
{
    (void)context;
    handled += emergency ? 1000000 : 1;
    sigsegv_leave_handler(leave, NULL, NULL, NULL);
}

NOINLINE static int read_at(const char *from)
{
    return *from;
}

NOINLINE static void write_at(char *to)
{
    *to = 1;
}

NOINLINE static int endless(int n)
{
    volatile char block[64];
    block[n % 64] = (char)n;
    return endless(n + 1) + block[n % 64];
}

static void batch(void)
{
    handled = 0;
    for (int i = 0; i < 50; i++) {
        mprotect(page, PAGE, PROT_NONE);
        read_at(page + i);
        mprotect(page, PAGE, PROT_READ);
        write_at(page + i);
    }
    for (volatile int i = 0; i < 3; i++) {
        if (sigsetjmp(place, 1) == 0)
            endless(0);
    }
    printf("handled %d\n", handled);
    fflush(stdout);
}

int main(void)
{
    char line[64];
    page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stackoverflow_install_handler(on_overflow, extra_stack, sizeof extra_stack);
    sigsegv_install_handler(on_fault);
    while (fgets(line, sizeof line, stdin) != NULL)
        batch();
    return 3;
}
