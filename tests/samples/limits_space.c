/* Limits its own address space and then uses most of the rest. It makes mappings, and both a child
 * and the program check that their contents are intact. It also runs more threads than a limited
 * recording has slots for. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

enum { PARTS = 9, THREADS = 24, CALLS = 1000, STACK_BYTES = 65536 };

static uint8_t *parts[PARTS];

__attribute__((noipa)) static long leaf(long x)
{
    return x + 1;
}

static int set_limit(const char *how, uint64_t bytes)
{
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
    if (strcmp(how, "prlimit") == 0) {
        return prlimit(getpid(), RLIMIT_AS, &limit, NULL);
    }
    if (strcmp(how, "syscall") == 0) {
        return (int)syscall(SYS_prlimit64, 0, RLIMIT_AS, &limit, NULL);
    }
    return setrlimit(RLIMIT_AS, &limit);
}

static int map_parts(void)
{
    int mapped = 0;
    for (int i = 0; i < PARTS; i++) {
        parts[i] = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (parts[i] != MAP_FAILED) {
            memset(parts[i], i + 1, 4096);
            parts[i][64 * MIB - 1] = (uint8_t)i;
            mapped++;
        }
    }
    return mapped;
}

static int count_whole(void)
{
    int whole = 0;
    for (int i = 0; i < PARTS; i++) {
        whole += parts[i] != MAP_FAILED && parts[i][1] == i + 1 && parts[i][64 * MIB - 1] == i;
    }
    return whole;
}

static void *call(void *unused)
{
    long sum = 0;
    (void)unused;
    for (int i = 0; i < CALLS; i++) {
        sum = leaf(sum);
    }
    return (void *)sum; /* NOLINT(performance-no-int-to-ptr) */
}

/* Runs all threads at once. Some of them get no slot. Returns the sum of their results, or -1 on
 * failure. */
static long run_threads(void)
{
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    long sum = 0;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], &attributes, call, NULL) != 0) {
            return -1;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        sum += (long)(intptr_t)result;
    }
    return sum;
}

/* Waits until a recorder has attached to and hooked the program. */
static void wait_for_hooks(void)
{
    const volatile uint8_t *code = (const uint8_t *)(uintptr_t)leaf;
    const uint8_t before = *code;
    puts("ready");
    fflush(stdout);
    while (*code == before) {
        usleep(1000);
    }
}

int main(int count_of_arguments, char **arguments)
{
    int status = 0;
    if (count_of_arguments < 2) {
        return 2;
    }
    if (count_of_arguments > 2) {
        wait_for_hooks();
    }
    leaf(0);
    const int set = set_limit(arguments[1], 800 * MIB);
    const int mapped = map_parts();
    const pid_t child = fork();
    if (child == 0) {
        call(NULL);
        _exit(count_whole());
    }
    waitpid(child, &status, 0);
    printf("set %d, mapped %d, child %d, whole %d, sum %ld\n", set, mapped, WEXITSTATUS(status),
           count_whole(), run_threads());
    return 0;
}
