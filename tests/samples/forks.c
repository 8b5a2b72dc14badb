/* Creates children in unusual ways.
 *
 *   forks WAY     the child calls in_child CALLS times and ends with status 4. The parent prints
 *                 how the child ended. If libc's fork handlers do not see the fork, the parent
 *                 calls in_parent CALLS times meanwhile
 *   forks run     runs this program in all ways; each run calls leaf CALLS times
 *   forks become  becomes such a run in its own process
 *   forks past    runs the program twice by a bare instruction. The first run waits until its
 *                 process is no longer recorded; the second ends at once
 *   forks become-past PATH
 *                 becomes the first of these runs, by another path
 *   forks wait    prints "ready", reads a line, does what run and past do, ends at the next line */
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLS = 1000, CHILD_STATUS = 4, RUN_FAILED = 99, PATIENCE_S = 60, PATH_BYTES = 512 };

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

/* A callback of dl_iterate_phdr. It returns when the test allows it; until then, this thread holds
 * the loader's lock. */
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

/* Waits for a child, and prints its exit status and its signal. Kills a child that hangs. */
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

/* Forks while another thread holds the loader's lock. fork does not reset that lock. */
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

/* Forks by a bare instruction on x86-64, elsewhere by libc's syscall(). */
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

/* Executes a program by a bare instruction on x86-64, elsewhere by libc's syscall(). Returns only
 * on failure. */
static void execute_by_instruction(const char *path, char **arguments, char **environment)
{
#if defined(__x86_64__)
    long result = SYS_execve;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(path), "S"(arguments), "d"(environment)
                     : "rcx", "r11", "memory");
#else
    (void)syscall(SYS_execve, path, arguments, environment);
#endif
}

/* Finds the arena file through which this process is recorded. */
static void find_arena(char path[PATH_BYTES])
{
    char line[PATH_BYTES + 128];
    FILE *maps = fopen("/proc/self/maps", "re");
    path[0] = '\0';
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        char *begin = strchr(line, '/');
        char *end = strstr(line, ".arena\n");
        if (begin != NULL && end != NULL) {
            end[strlen(".arena")] = '\0';
            (void)snprintf(path, PATH_BYTES, "%s", begin);
        }
    }
    if (maps != NULL) {
        (void)fclose(maps);
    }
}

/* Waits until the recorder has stopped recording the process of this arena file. */
static void wait_until_left(const char *arena)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    (void)alarm(PATIENCE_S);
    while (arena[0] != '\0' && access(arena, F_OK) == 0) {
        (void)nanosleep(&pause, NULL);
    }
    (void)alarm(0);
}

/* Runs this program again in the way `how`; it then calls leaf. Does not return. */
static void run(const char *how, char **arguments)
{
    char *path = arguments[1] != NULL && arguments[2] != NULL ? arguments[2] : arguments[0];
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
    } else if (strcmp(how, "instruction") == 0) {
        char arena[PATH_BYTES];
        char *waiting[] = {arguments[0], "leaf", arena, NULL};
        find_arena(arena);
        execute_by_instruction(path, waiting, environment);
    } else if (strcmp(how, "short-instruction") == 0) {
        execute_by_instruction(arguments[0], own, environment);
    } else if (strcmp(how, "spawn") == 0) {
        pid_t child = 0;
        int status = 0;
        (void)posix_spawn(&child, arguments[0], NULL, NULL, own, environment);
        (void)waitpid(child, &status, 0);
        _exit(WEXITSTATUS(status));
    } else if (strcmp(how, "vfork") == 0) {
        int status = 0;
        const pid_t child = vfork();
        if (child == 0) {
            (void)execve("/there is no program", own, environment);
            (void)execve(arguments[0], own, environment);
            _exit(RUN_FAILED);
        }
        (void)waitpid(child, &status, 0);
        _exit(WEXITSTATUS(status));
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

/* The main function of the program that is run. Its environment must have no trace of Sojourn. */
static int be_run(const char *arena)
{
    if (arena != NULL) {
        wait_until_left(arena);
    }
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
    static const char *const hows[] = {"fexecve",          "execveat",       "execveat-path",
                                       "syscall-execveat", "syscall-execve", "memfd",
                                       "execve",           "spawn",          "vfork"};
    for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++) {
        const pid_t child = fork();
        if (child == 0) {
            run(hows[i], arguments);
        }
        wait_for(child);
    }
}

/* Runs the program twice by a bare instruction. It waits for the second run only when the recorder
 * has stopped recording that process: until then the child is a zombie. */
static void run_past_libc(char **arguments)
{
    char arena[PATH_BYTES];
    int pipe_ends[2];
    pid_t child = fork();
    if (child == 0) {
        run("instruction", arguments);
    }
    wait_for(child);
    (void)!pipe(pipe_ends);
    child = fork();
    if (child == 0) {
        find_arena(arena);
        (void)!write(pipe_ends[1], arena, sizeof(arena));
        run("short-instruction", arguments);
    }
    siginfo_t info;
    (void)!read(pipe_ends[0], arena, sizeof(arena));
    (void)close(pipe_ends[0]);
    (void)close(pipe_ends[1]);
    (void)waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    wait_until_left(arena);
    wait_for(child);
}

static void run_when_told(char **arguments)
{
    puts("ready");
    (void)fflush(stdout);
    (void)getchar();
    run_in_children(arguments);
    run_past_libc(arguments);
    (void)fflush(stdout);
    (void)getchar();
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
        return be_run(count > 2 ? arguments[2] : NULL);
    } else if (strcmp(way, "run") == 0) {
        run_in_children(arguments);
    } else if (strcmp(way, "wait") == 0) {
        run_when_told(arguments);
    } else if (strcmp(way, "past") == 0) {
        run_past_libc(arguments);
    } else if (strcmp(way, "become-past") == 0) {
        run("instruction", arguments);
    } else if (strcmp(way, "become") == 0) {
        run("execve", arguments);
    }
    return 0;
}
