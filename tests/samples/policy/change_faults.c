#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __clang__
#define KEPT extern "C" __attribute__((noinline))
#else
#define KEPT extern "C" __attribute__((noipa))
#endif
static volatile long sink;
#ifdef OWN_MALLOC
extern "C" void *__libc_malloc(size_t);
KEPT void *malloc(size_t bytes)
{
    sink++;
    return __libc_malloc(bytes);
}
#endif
KEPT long flt_factorial(long n)
{
    const long below = n > 1 ? flt_factorial(n - 1) : 1;
    sink++;
    return n > 1 ? n * below : 1;
}
KEPT int flt_leaf(int n)
{
    sink += n;
    return n * 10;
}
KEPT int flt_jump(int n)
{
    sink++;
    return flt_leaf(n + 1);
}
KEPT int flt_throw(int n)
{
    if (n % 2 != 0) {
        throw n;
    }
    sink++;
    return n + 1;
}
static jmp_buf back;
KEPT int flt_long(int n)
{
    if (n % 2 != 0) {
        longjmp(back, n);
    }
    sink++;
    return n + 1;
}
static volatile int handled;
KEPT int flt_work(int n)
{
    sink++;
    return n * 2;
}
static void handler(int signal)
{
    handled += flt_work(1000) + signal - signal;
}
KEPT int flt_open(const char *path, int flags)
{
    sink++;
    return flags + (path[0] == '/');
}
static int confine(void)
{
#define ALLOW(number)                                                                              \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), ALLOW(SYS_write),
        ALLOW(SYS_exit_group), ALLOW(SYS_rt_sigreturn),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
               ? -1
               : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}
static int unwound(void)
{
    int sum = 0;
    for (int i = 0; i < 10; i++) {
        try {
            sum += flt_throw(i);
        } catch (int thrown) {
            sum += 100;
        }
    }
    return sum;
}
static int jumped(void)
{
    static volatile int sum, i;
    sum = 0;
    for (i = 0; i < 10; i++) {
        if (setjmp(back) == 0) {
            sum += flt_long(i);
        } else {
            sum += 100;
        }
    }
    return sum;
}
static int interrupted(void)
{
    int sum = 0;
    signal(SIGUSR1, handler);
    for (int i = 0; i < 50; i++) {
        sum += flt_work(i);
        raise(SIGUSR1);
    }
    return sum + handled;
}
static int confined(void)
{
    static char line[100];
    int denied = 0, other = 0;
    if (confine() != 0) {
        return -1;
    }
    for (int i = 0; i < 2000; i++) {
        errno = 0;
        const int result = flt_open("/etc/hostname", i);
        denied += result == -1 && errno == 13;
        other += result != -1 && result != i + 1;
    }
    const int size = snprintf(line, sizeof(line), "%d %d\n", denied, other);
    (void)!write(1, line, (size_t)size);
    syscall(SYS_exit_group, 0);
    return 0;
}
int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IONBF, 0);
    if (strcmp(mode, "factorial") == 0) {
        printf("%ld\n", flt_factorial(10));
    } else if (strcmp(mode, "jump") == 0) {
        printf("%d\n", flt_jump(3));
    } else if (strcmp(mode, "throw") == 0) {
        printf("%d\n", unwound());
    } else if (strcmp(mode, "long") == 0) {
        printf("%d\n", jumped());
    } else if (strcmp(mode, "handler") == 0) {
        printf("%d\n", interrupted());
    } else if (strcmp(mode, "confined") == 0) {
        return confined();
    } else if (strcmp(mode, "malloc") == 0) {
        for (int i = 0; i < 20; i++) {
            char *volatile block = (char *)malloc(12345); /* and uses the block that it gets */
            block[0] = 'x';
            printf("%d\n", i);
        }
    }
    return 0;
}
