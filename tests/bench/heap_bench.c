/* Measures what memory blocks cost.
 *
 *   heap_bench ops [ROUNDS]   ns of CPU for a malloc or a free, the least of the rounds; and KiB of
 *                             the process's own memory at the end
 *   heap_bench pairs          ns for a malloc, a write and a free
 *   heap_bench mprotect|guards|userfaultfd
 *                             ns for opening and closing a page; and how many pages can be open
 *                             between closed ones */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ADVICE_GUARD_INSTALL = 102, ADVICE_GUARD_REMOVE = 103 };

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

enum { BLOCKS = 5000, OPERATIONS = 100000, ROUNDS = 120, PAGE = 4096, PAIRS = 200000 };
enum { SLOTS = 1100000, SPACE_BYTES = 2 * PAGE };

static char *pool;
static bool with_guards;
static int faults = -1; /* descriptor of userfaultfd; -1: not used */

static double cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void one_round(void **blocks, unsigned *random)
{
    for (int i = 0; i < OPERATIONS; i++) {
        *random = *random * 1103515245 + 12345;
        const unsigned place = (*random >> 8) % BLOCKS;
        if (blocks[place] != NULL) {
            free(blocks[place]);
            blocks[place] = NULL;
        } else {
            blocks[place] = malloc(16 + (*random >> 4) % (1U << (4 + (*random >> 20) % 9)));
            *(volatile char *)blocks[place] = 1;
        }
    }
}

/* Returns the KiB of anonymous and shared memory. */
static long own_memory(void)
{
    static char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "RssAnon:", 8) == 0 || strncmp(line, "RssShmem:", 9) == 0) {
            kib += strtol(strchr(line, ':') + 1, NULL, 10);
        }
    }
    return kib;
}

static void measure_pairs(void)
{
    const double start = cpu_ns();
    for (int i = 0; i < PAIRS; i++) {
        volatile char *block = malloc(16 + i % 200);
        *block = 1;
        free((void *)block);
    }
    printf("%.1f\n", (cpu_ns() - start) / PAIRS);
}

static void measure_operations(int rounds)
{
    static void *blocks[BLOCKS];
    unsigned random = 1;
    double least = 1e18;
    for (int round = 0; round < rounds; round++) {
        const double start = cpu_ns();
        one_round(blocks, &random);
        const double took = (cpu_ns() - start) / OPERATIONS;
        least = took < least ? took : least;
    }
    printf("%.2f %ld\n", least, own_memory());
}

static bool open_faults(void)
{
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_SIGBUS};
    struct uffdio_register all = {
        .range = {.start = (uintptr_t)pool, .len = (uint64_t)SLOTS * SPACE_BYTES},
        .mode = UFFDIO_REGISTER_MODE_MISSING};
    faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    return faults >= 0 && ioctl(faults, UFFDIO_API, &api) == 0 &&
           ioctl(faults, UFFDIO_REGISTER, &all) == 0;
}

static bool open_page(char *page)
{
    struct uffdio_zeropage zeroes = {.range = {.start = (uintptr_t)page, .len = PAGE}};
    if (with_guards) {
        return madvise(page, PAGE, ADVICE_GUARD_REMOVE) == 0;
    }
    return faults >= 0 ? ioctl(faults, UFFDIO_ZEROPAGE, &zeroes) == 0
                       : mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0;
}

static void close_page(char *page)
{
    if (with_guards) {
        (void)madvise(page, PAGE, ADVICE_GUARD_INSTALL);
        return;
    }
    if (faults < 0) {
        (void)mprotect(page, PAGE, PROT_NONE);
    }
    (void)madvise(page, PAGE, MADV_DONTNEED);
}

static int measure_pages(const char *how)
{
    long alive = 0;
    const size_t bytes = (size_t)SLOTS * SPACE_BYTES;
    const bool with_protection = strcmp(how, "mprotect") == 0;
    with_guards = strcmp(how, "guards") == 0;
    pool = mmap(NULL, bytes, with_protection ? PROT_NONE : PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pool == MAP_FAILED || (strcmp(how, "userfaultfd") == 0 && !open_faults()) ||
        (with_guards && madvise(pool, bytes, ADVICE_GUARD_INSTALL) != 0)) {
        puts("not possible here");
        return 1;
    }
    (void)madvise(pool, bytes, MADV_NOHUGEPAGE);
    const double start = cpu_ns();
    for (long i = 0; i < PAIRS; i++) {
        char *page = pool + (i % 20000) * SPACE_BYTES + PAGE;
        if (!open_page(page)) {
            return 1;
        }
        page[64] = 1;
        close_page(page);
    }
    printf("%.0f", (cpu_ns() - start) / PAIRS);
    while (alive < SLOTS && open_page(pool + alive * SPACE_BYTES + PAGE)) {
        alive++;
    }
    printf(" %ld\n", alive);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "ops") == 0) {
        measure_operations(argc == 3 ? atoi(argv[2]) : ROUNDS);
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "pairs") == 0) {
        measure_pairs();
        return 0;
    }
    if (argc == 2) {
        return measure_pages(argv[1]);
    }
    return 2;
}
