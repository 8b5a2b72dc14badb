/* A program that a debugger steps through instruction by instruction, and then releases. The
 * debugger is its child. While it steps, all saved flags contain the trap flag. The child detaches
 * after the flags are saved and before they are restored. Prints how often the program survived. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 4, STEPS = 400000, STEPS_BEHIND = 3, CALLS_BETWEEN = 100000, PUSHFQ = 0x9c };

typedef struct shared_words {
    atomic_ulong calls;
    atomic_int ready; /* the child may now trace */
    atomic_int done;  /* number of completed rounds */
} shared_words;

static shared_words *shared;

__attribute__((noinline)) void stepped_leaf(void)
{
    atomic_fetch_add(&shared->calls, 1);
}

static int step(pid_t pid)
{
    int status = 0;
    return ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) == 0 && waitpid(pid, &status, 0) == pid &&
           WIFSTOPPED(status);
}

/* Steps until flags have been saved, and a few instructions further. */
static int step_past_flags(pid_t pid)
{
    for (int i = 0; i < STEPS; i++) {
        struct user_regs_struct registers;
        if (ptrace(PTRACE_GETREGS, pid, NULL, &registers) != 0) {
            return 0;
        }
        errno = 0;
        const long code = ptrace(PTRACE_PEEKTEXT, pid, (void *)registers.rip, NULL);
        if (!step(pid)) {
            return 0;
        }
        if (errno == 0 && (code & 0xff) == PUSHFQ) {
            for (int more = 0; more < STEPS_BEHIND; more++) {
                if (!step(pid)) {
                    return 0;
                }
            }
            break;
        }
    }
    return 1;
}

static void debug(pid_t pid)
{
    int status;
    while (!shared->ready) {
    }
    for (int round = 0; round < ROUNDS; round++) {
        if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0 ||
            ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) != 0 || waitpid(pid, &status, 0) != pid ||
            !step_past_flags(pid) || ptrace(PTRACE_DETACH, pid, NULL, NULL) != 0) {
            _exit(1);
        }
        const unsigned long calls = shared->calls;
        while (shared->calls < calls + CALLS_BETWEEN) {
            if (getppid() != pid) {
                _exit(1); /* the parent died */
            }
        }
        shared->done++;
    }
    _exit(0);
}

int main(void)
{
    const pid_t self = getpid();
    int status = 0;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        return 2;
    }
    const pid_t child = fork();
    if (child == 0) {
        debug(self);
    }
    (void)prctl(PR_SET_PTRACER, child, 0, 0, 0);
    shared->ready = 1;
    while (waitpid(child, &status, WNOHANG) == 0) {
        for (int i = 0; i < 1000; i++) {
            stepped_leaf();
        }
    }
    printf("lived on %d times\n", shared->done);
    return status != 0;
}
