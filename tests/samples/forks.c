/* Children that a process makes in ways of its own. forks WAY; the child calls in_child CALLS times
 * and ends with 4, the parent prints with what it has ended. In ways that libc's fork handlers do
 * not see, the parent calls in_parent CALLS times meanwhile. "run" runs the program itself in all
 * ways, "become" in its own process: that calls leaf CALLS times. */
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLS = 1000, CHILD_STATUS = 4, RUN_FAILED = 99, PATIENCE_S = 60 };

static sem_t is_held;
static sem_t may_end;
static volatile pid_t waited_for;

__attribute__((noipa)) static long in_child(long number)
{
    return number * 7;
}

__attribute__((noipa)) static long in_parent(long number)
{
    return number * 5;
}

__attribute__((noipa)) static long leaf(long number)
{
    return number + 1;
}

/* Returns while the calling thread holds the loader's lock. */
static int hold(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)info;
    (void)size;
    (void)unused;
    (void)sem_post(&is_held);
    (void)sem_wait(&may_end);
    return 1;
}

static void *hold_loader_lock(void *unused)
{
    (void)dl_iterate_phdr(hold, unused);
    return NULL;
}

__attribute__((noipa)) static int use_freed(void)
{
    volatile int *block = malloc(sizeof(*block));
    *block = 1;
    free((void *)block);
    return *block;
}

__attribute__((noipa)) static void be_child(void)
{
    volatile long sum = 0;
    for (long i = 0; i < CALLS; i++) {
        sum += in_child(i);
    }
    (void)use_freed();
    _exit(CHILD_STATUS);
}

static void end_child(int signal)
{
    (void)signal;
    (void)kill(waited_for, SIGKILL);
}

/* A child that hangs is ended. */
static void wait_for(pid_t child)
{
    int status = 0;
    waited_for = child;
    (void)signal(SIGALRM, end_child);
    (void)alarm(PATIENCE_S);
    (void)waitpid(child, &status, 0);
    (void)alarm(0);
    printf("%d %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1, WTERMSIG(status));
}

/* fork while another thread holds the loader's lock, which it does not reset. */
static void fork_locked(void)
{
    pthread_t holder;
    (void)sem_init(&is_held, 0, 0);
    (void)sem_init(&may_end, 0, 0);
    (void)pthread_create(&holder, NULL, hold_loader_lock, NULL);
    (void)sem_wait(&is_held);
    const pid_t child = fork();
    if (child == 0) {
        be_child();
    }
    wait_for(child);
    (void)sem_post(&may_end);
    (void)pthread_join(holder, NULL);
}

static void fork_unseen(pid_t (*fork_so)(void))
{
    volatile long sum = in_parent(0);
    const pid_t child = fork_so();
    if (child == 0) {
        be_child();
    }
    for (long i = 1; i < CALLS; i++) {
        sum += in_parent(i);
    }
    wait_for(child);
}

static pid_t fork_by_syscall(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* Past libc. */
static pid_t fork_by_instruction(void)
{
#if defined(__x86_64__)
    long result = SYS_clone;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(SIGCHLD), "S"(0), "d"(0)
                     : "rcx", "r11", "memory");
    return (pid_t)result;
#else
    return fork_by_syscall();
#endif
}

/* What runs another program: this one, which then calls leaf. */
static void run(const char *how, char **arguments)
{
    char *own[] = {arguments[0], "leaf", NULL};
    char *environment[] = {"A=1", NULL};
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (strcmp(how, "fexecve") == 0) {
        (void)fexecve(file, own, environment);
    } else if (strcmp(how, "execveat") == 0) {
        (void)execveat(file, "", own, environment, AT_EMPTY_PATH);
    } else if (strcmp(how, "execveat-path") == 0) {
        (void)execveat(AT_FDCWD, arguments[0], own, environment, 0);
    } else if (strcmp(how, "syscall-execveat") == 0) {
        (void)syscall(SYS_execveat, file, "", own, environment, AT_EMPTY_PATH);
    } else if (strcmp(how, "syscall-execve") == 0) {
        (void)syscall(SYS_execve, arguments[0], own, environment);
    } else if (strcmp(how, "memfd") == 0) {
        struct stat status;
        const int memory = memfd_create("forks", 0);
        (void)fstat(file, &status);
        (void)sendfile(memory, file, NULL, (size_t)status.st_size);
        (void)fexecve(memory, own, environment);
    } else {
        (void)execv(arguments[0], own);
    }
    _exit(RUN_FAILED);
}

/* The program that is run, with no trace of ours in its environment. */
static int be_run(void)
{
    volatile long sum = 0;
    for (char **entry = environ; *entry != NULL; entry++) {
        if (strstr(*entry, "PRELOAD") != NULL || strstr(*entry, "SOJOURN") != NULL) {
            return RUN_FAILED;
        }
    }
    for (long i = 0; i < CALLS; i++) {
        sum += leaf(i);
    }
    return CHILD_STATUS;
}

static void run_in_children(char **arguments)
{
    static const char *const hows[] = {
        "fexecve",        "execveat", "execveat-path", "syscall-execveat",
        "syscall-execve", "memfd",    "execve"};
    for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++) {
        const pid_t child = fork();
        if (child == 0) {
            run(hows[i], arguments);
        }
        wait_for(child);
    }
}

int main(int count, char **arguments)
{
    const char *way = count > 1 ? arguments[1] : "";
    if (strcmp(way, "locked") == 0) {
        fork_locked();
    } else if (strcmp(way, "_Fork") == 0) {
        fork_unseen(_Fork);
    } else if (strcmp(way, "syscall") == 0) {
        fork_unseen(fork_by_syscall);
    } else if (strcmp(way, "instruction") == 0) {
        fork_unseen(fork_by_instruction);
    } else if (strcmp(way, "leaf") == 0) {
        return be_run();
    } else if (strcmp(way, "run") == 0) {
        run_in_children(arguments);
    } else if (strcmp(way, "become") == 0) {
        run("execve", arguments);
    }
    return 0;
}
