/* Does things that make it hard to watch freed memory. Each argument selects one. Each ends with a
 * use of a freed block, which must be found, and prints its argument. */
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT __attribute__((noinline))

static volatile int sink;
static volatile sig_atomic_t hits;

KEPT static char *make_block(size_t bytes)
{
    char *block = malloc(bytes);
    memset(block, 'x', bytes);
    return block;
}

KEPT static void drop_block(char *block)
{
    free(block);
    sink = 0;
}

KEPT static void read_block(const volatile char *block)
{
    sink = block[3];
}

KEPT static void use_freed(void)
{
    char *block = make_block(40);
    drop_block(block);
    read_block(block);
}

/* The child of a vfork allocates and frees in the parent's memory, then runs another program. */
static void fork_in_place(void)
{
    for (int i = 0; i < 20; i++) {
        int status = 1;
        const pid_t child = vfork();
        if (child == 0) {
            drop_block(make_block(100));
            execl("/bin/true", "true", (char *)NULL);
            _exit(3);
        }
        waitpid(child, &status, 0);
        if (status != 0) {
            exit(4);
        }
    }
    use_freed();
}

static void close_everything(void)
{
    const int out = dup(STDOUT_FILENO);
    for (int file = 3; file < 1024; file++) {
        if (file != out) {
            close(file);
        }
    }
    close(out);
    use_freed();
}

static void allocate(int signal)
{
    (void)signal;
    drop_block(make_block((size_t)(hits % 500) + 1));
    hits++;
}

/* A handler allocates between the program's allocations. The signal is blocked during an
 * allocation, because the C library's malloc would deadlock. */
static void allocate_in_handlers(void)
{
    const struct itimerval often = {.it_interval = {.tv_usec = 200}, .it_value = {.tv_usec = 200}};
    const struct itimerval never = {{0, 0}, {0, 0}};
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    signal(SIGALRM, allocate);
    setitimer(ITIMER_REAL, &often, NULL);
    while (hits < 200) {
        sigprocmask(SIG_BLOCK, &alarm_only, NULL);
        drop_block(make_block(70));
        sigprocmask(SIG_UNBLOCK, &alarm_only, NULL);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    use_freed();
}

/* Uses a block after the module that freed it was unloaded. */
static void free_in_module(void)
{
    char path[4096];
    const ssize_t bytes = readlink("/proc/self/exe", path, sizeof(path) - 16);
    path[bytes > 0 ? bytes : 0] = '\0';
    strcpy(strrchr(path, '/'), "/freeing.so");
    void *module = dlopen(path, RTLD_NOW);
    void (*free_there)(void *block) = NULL;
    if (module == NULL) {
        exit(5);
    }
    *(void **)&free_there = dlsym(module, "free_in_module");
    char *block = make_block(60);
    free_there(block);
    dlclose(module);
    read_block(block);
}

/* Leaves no memory for the program or the monitor. */
static void run_out_of_memory(void)
{
    const struct rlimit little = {.rlim_cur = UINT64_C(1) << 30, .rlim_max = RLIM_INFINITY};
    char *volatile reserve = malloc(100000);
    setrlimit(RLIMIT_AS, &little);
    while (malloc(1 << 20) != NULL) {
    }
    while (malloc(1000) != NULL) {
    }
    free(reserve);
    use_freed();
}

/* Locks all memory. A kernel may refuse to free locked memory. */
static void lock_memory(void)
{
    char *before = make_block(50);
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        exit(6);
    }
    drop_block(before);
    for (int i = 0; i < 200; i++) {
        drop_block(make_block((size_t)i + 1));
    }
    use_freed();
}

static void keep_alive(size_t count)
{
    char **blocks = calloc(count, sizeof(*blocks));
    for (size_t i = 0; i < count; i++) {
        blocks[i] = make_block(i % 100 + 1);
        blocks[i][0] = (char)i;
    }
    for (size_t i = 0; i < count; i++) {
        if (blocks[i][0] != (char)i) {
            exit(7);
        }
        drop_block(blocks[i]);
    }
    free(blocks);
    use_freed();
}

/* Keeps more blocks alive than a process may have mappings. */
static void keep_many_alive(void)
{
    keep_alive(40000);
}

static void keep_very_many_alive(void)
{
    keep_alive(100000);
}

/* The program uses the content of a freed block, which must be the same as without the monitor. */
static void continue_with_content(void)
{
    static const size_t sizes[] = {20, 4096, 9000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        volatile char *block = make_block(sizes[i]);
        block[sizes[i] - 1] = 'z';
        drop_block((char *)block);
        read_block(block);
        if (sink != 'x' || block[sizes[i] - 1] != 'z' || block[sizes[i] / 2] != 'x') {
            exit(8);
        }
    }
}

/* Closed pages must be closed in a child, too. Open pages must keep their content. */
static void use_in_children(void)
{
    for (int i = 0; i < 3; i++) {
        char *lives = make_block(30);
        char *gone = make_block(40);
        drop_block(gone);
        const pid_t child = fork();
        if (child == 0) {
            if (lives[29] != 'x') {
                _exit(9);
            }
            drop_block(lives);
            read_block(gone);
            exit(sink != 'x');
        }
        int status = 1;
        waitpid(child, &status, 0);
        if (status != 0 || lives[29] != 'x') {
            exit(10);
        }
        drop_block(lives);
    }
}

enum { CONFINED_BLOCKS = 100 };
static char *confined_blocks[CONFINED_BLOCKS];
static atomic_int confined_step;

static void wait_for_step(int step)
{
    while (atomic_load(&confined_step) != step) {
    }
}

/* Frees blocks, allocates and writes. A byte after one of the blocks was overwritten. */
static void *work_confined(void *unused)
{
    atomic_store(&confined_step, 1);
    wait_for_step(2);
    for (int i = 0; i < CONFINED_BLOCKS; i++) {
        drop_block(confined_blocks[i]);
        char *block = make_block(5);
        const struct iovec part = {block, 0};
        (void)!writev(STDOUT_FILENO, &part, 1);
        drop_block(block);
    }
    atomic_store(&confined_step, 3);
    for (;;) {
    }
    return unused;
}

/* Forbids itself system calls: a forbidden one kills it. Allows what malloc may need later, but not
 * what it needs once. */
static int forbid_calls(void)
{
#define ALLOW(number)                                                                              \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_write),
        ALLOW(SYS_writev),
        ALLOW(SYS_exit_group),
        ALLOW(SYS_mmap),
        ALLOW(SYS_munmap),
        ALLOW(SYS_mprotect),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    const struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
               ? -1
               : (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
                              &program);
}

/* Not a hardship that ends with a use of a freed block: that needs a system call. */
static void work_behind_filter(void)
{
    pthread_t thread;
    for (int i = 0; i < CONFINED_BLOCKS; i++) {
        confined_blocks[i] = make_block(20);
    }
    ((volatile char *)confined_blocks[1])[20] = 'y';
    if (pthread_create(&thread, NULL, work_confined, NULL) != 0) {
        exit(4);
    }
    wait_for_step(1); /* The start of a thread needs other system calls. */
    if (forbid_calls() != 0) {
        exit(5);
    }
    atomic_store(&confined_step, 2);
    wait_for_step(3);
    drop_block(make_block(30));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *word;
        void (*run)(void);
    } hardships[] = {{"vfork", fork_in_place},
                     {"descriptors", close_everything},
                     {"handlers", allocate_in_handlers},
                     {"module", free_in_module},
                     {"memory", run_out_of_memory},
                     {"use", use_freed},
                     {"locked", lock_memory},
                     {"many", keep_many_alive},
                     {"very_many", keep_very_many_alive},
                     {"content", continue_with_content},
                     {"children", use_in_children},
                     {"confined", work_behind_filter}};
    for (size_t i = 0; argc == 2 && i < sizeof(hardships) / sizeof(hardships[0]); i++) {
        if (strcmp(argv[1], hardships[i].word) == 0) {
            hardships[i].run();
            return write(STDOUT_FILENO, argv[1], strlen(argv[1])) < 0;
        }
    }
    return 2;
}
