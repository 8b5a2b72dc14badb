/* A program that takes nearly all system calls away from itself: whoever makes another one is
 * killed. It tells "confined", waits for a line, and then makes many calls on its first thread and
 * on one that has made few before. Prints how many. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FIRST_CALLS = 8000000, OTHER_CALLS = 1000 };

#define ALLOW(number)                                                                              \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static atomic_uint total;
static atomic_int is_there;
static atomic_int may_begin;

__attribute__((noinline)) unsigned confined_mix(unsigned value)
{
    return value * 2654435761u + (value >> 7);
}

static void call_often(unsigned count)
{
    unsigned value = count;
    for (unsigned i = 0; i < count; i++) {
        value = confined_mix(value + i);
    }
    total += value;
}

static void *wait_and_call(void *argument)
{
    is_there = 1;
    while (!may_begin) {
    }
    call_often(OTHER_CALLS);
    may_begin = 2;
    while (may_begin == 2) {
    }
    return argument;
}

static int confine(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_read),
        ALLOW(SYS_write),
        ALLOW(SYS_exit_group),
        ALLOW(SYS_gettid),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0;
}

int main(void)
{
    char text[64];
    pthread_t other;
    if (pthread_create(&other, NULL, wait_and_call, NULL) != 0) {
        return 2;
    }
    while (!is_there) {
    }
    if (confine() != 0) {
        return 2;
    }
    (void)!write(1, "confined\n", 9);
    if (read(0, text, 1) != 1) {
        return 3;
    }
    call_often(FIRST_CALLS);
    may_begin = 1;
    while (may_begin != 2) {
    }
    const int length = snprintf(text, sizeof(text), "calls %d\n", FIRST_CALLS + OTHER_CALLS);
    (void)!write(1, text, (size_t)length);
    return 0;
}
