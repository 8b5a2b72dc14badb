/* A program that forbids itself nearly all system calls: a forbidden one kills it. Afterwards it
 * makes many calls on its first thread, and on a thread that has made few before. Prints the number
 * of calls.
 *
 * The argument says how it confines itself. seccomp: for all threads. prctl: for the first thread.
 * strict: in strict mode, alone. strict-threads: in strict mode, beside another thread.
 * "strict-told": as strict, but after it has read a byte. fork: also allows what fork and wait
 * need, and a child makes calls in the middle. */
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
#include <sys/wait.h>
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

static int set_filter(const char *how)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_read),
        ALLOW(SYS_write),
        ALLOW(SYS_exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_filter forks[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_clone),
        ALLOW(SYS_set_robust_list),
        ALLOW(SYS_wait4),
    };
    if (strcmp(how, "fork") == 0) {
        struct sock_fprog fork_program = {0};
        struct sock_filter
            all[sizeof(filter) / sizeof(filter[0]) + sizeof(forks) / sizeof(forks[0])];
        memcpy(all, forks, sizeof(forks));
        memcpy(all + sizeof(forks) / sizeof(forks[0]), filter + 1,
               sizeof(filter) - sizeof(filter[0]));
        fork_program.len = sizeof(all) / sizeof(all[0]) - 1;
        fork_program.filter = all;
        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                   ? -1
                   : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &fork_program, 0, 0);
    }
    struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return -1;
    }
    if (strcmp(how, "prctl") == 0) {
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
    }
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

static void tell_and_end(int number)
{
    char text[64];
    const int length = snprintf(text, sizeof(text), "calls %d\n", number);
    (void)!write(1, text, (size_t)length);
    syscall(SYS_exit, 0); /* strict mode allows this system call */
}

/* Waits until a byte arrives on the input. */
static void wait_for_word(void)
{
    puts("ready");
    (void)fflush(stdout);
    (void)getchar();
}

static int run_strict(int is_alone)
{
    pthread_t other;
    if (!is_alone && pthread_create(&other, NULL, wait_and_call, NULL) != 0) {
        return 2;
    }
    while (!is_alone && !is_there) {
    }
    call_often(OTHER_CALLS);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) != 0) {
        (void)!write(1, "refused\n", 8);
        return 4;
    }
    call_often(FIRST_CALLS);
    tell_and_end(OTHER_CALLS + FIRST_CALLS);
    return 0;
}

static int run_forks(void)
{
    char text[64];
    int status = 0;
    if (set_filter("fork") != 0) {
        return 3;
    }
    const pid_t child = fork();
    call_often(child == 0 ? OTHER_CALLS : FIRST_CALLS);
    if (child == 0) {
        _exit(5);
    }
    if (wait4(child, &status, 0, NULL) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 5) {
        (void)!write(1, "the child was killed\n", 21);
        _exit(6);
    }
    const int length = snprintf(text, sizeof(text), "calls %d\n", FIRST_CALLS + OTHER_CALLS);
    (void)!write(1, text, (size_t)length);
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t other;
    const char *how = argc == 2 ? argv[1] : "seccomp";
    if (strcmp(how, "fork") == 0) {
        return run_forks();
    }
    if (strcmp(how, "strict-told") == 0) {
        wait_for_word();
        return run_strict(1);
    }
    if (strncmp(how, "strict", strlen("strict")) == 0) {
        return run_strict(strcmp(how, "strict") == 0);
    }
    if (pthread_create(&other, NULL, wait_and_call, NULL) != 0) {
        return 2;
    }
    while (!is_there) {
    }
    if (set_filter(how) != 0) {
        return 3;
    }
    call_often(FIRST_CALLS);
    may_begin = 1;
    while (may_begin != 2) {
    }
    char text[64];
    const int length = snprintf(text, sizeof(text), "calls %d\n", FIRST_CALLS + OTHER_CALLS);
    (void)!write(1, text, (size_t)length);
    return 0;
}
