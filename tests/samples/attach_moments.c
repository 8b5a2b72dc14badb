/* A program that a tracer detaches from at chosen moments: a thread of it is in the agent, or about
 * to enter it.
 * attach_moments MODULE WAITING DELAY: several threads work, and one obeys the input:
 *   f  forks, and stays where the C library has the address of the agent's fork handler and has
 *      not called it yet
 *   d  does the same, many calls deep in a signal handler
 *   u  does the same in a fork that begins when the agent has freed its memory; until then no
 *      thread is at a point where anything could be unloaded
 *   h  forks, and stays in a fork handler of the program; no other thread is at a point where
 *      anything could be loaded
 *   l  loads MODULE, and after it is mapped stays at the agent's first instruction until the text
 *      of the recorded functions is restored
 *   w  loads WAITING, which calls moment_wait before or during its initialisation; prints what has
 *      been initialised, and how many of its import slots lead to no module
 *   c  does the same, DELAY microseconds after the agent has freed its memory
 *   p  walks the list of modules, and stays in the callback
 *   e  ends the process when the agent has freed its memory; the end takes a while
 *   t  outlives the first thread
 *   g  lets a staying thread continue, except for l
 * It prints "there" when it stays and "done" when it has continued. To find the place, it takes
 * single steps: the trap flag raises SIGTRAP after each instruction. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { TRAP_FLAG = 0x100, HEAD_BYTES = 16, DEEP = 9000, LIFETIME_S = 900, ENDS_WITH = 7 };

#define BALLAST_BYTES ((size_t)256 << 20)

typedef enum step_goal { GOAL_NONE, GOAL_CALL, GOAL_ENTRY } step_goal;

static volatile unsigned long total;
static int orders[2];
static int resume_pipe[2];
static uint64_t agent_low;
static uint64_t agent_high;
static uint64_t arena;
static atomic_bool is_unsafe;
static atomic_int unsafe_threads;
static unsigned char head[HEAD_BYTES];
static __thread volatile step_goal goal;
static __thread volatile int depth;
static __thread volatile bool waits_in_fork;
static const char *module;
static const char *waiting;
static unsigned delay_us;
static pthread_t first;

void moment_wait(void);
int wait_deep(int level);

__attribute__((noinline)) void moment_step(unsigned long value)
{
    total += value * 3 + (total >> 3);
}

static void say(const char *text)
{
    if (write(STDOUT_FILENO, text, strlen(text)) < 0) {
        _exit(2);
    }
}

/* WAITING calls this, too. */
__attribute__((noinline)) void moment_wait(void)
{
    char byte;
    say("there\n");
    (void)!read(resume_pipe[0], &byte, 1);
}

/* Waits until the agent's arena is unmapped. */
static void await_giving_back(void)
{
    unsigned char resident;
    while (mincore((void *)(uintptr_t)arena, 1, &resident) == 0) {
    }
}

static void read_orders(void);

/* The signal may interrupt the C library, which then holds its locks. */
static void stay_unsafe(int signal)
{
    if (signal == SIGUSR2) {
        await_giving_back();
        return;
    }
    atomic_fetch_add(&unsafe_threads, 1);
    if (gettid() == getpid()) {
        read_orders();
    }
    while (atomic_load(&is_unsafe)) {
        usleep(1000);
    }
    atomic_fetch_sub(&unsafe_threads, 1);
}

/* Reads commands and passes them on until the input ends. If a thread that stays calls this itself,
 * it returns once that thread may continue. */
static void read_orders(void)
{
    char order;
    while (read(STDIN_FILENO, &order, 1) == 1) {
        if (order == 'g') {
            atomic_store(&is_unsafe, false);
        }
        (void)!write(order == 'g' ? resume_pipe[1] : orders[1], &order, 1);
        if (order == 't') {
            pthread_exit(NULL);
        }
        if (order == 'u' || order == 'h') {
            atomic_store(&is_unsafe, true);
            raise(SIGUSR1);
        } else if (order == 'g' && atomic_load(&unsafe_threads) != 0) {
            break;
        }
    }
}

__attribute__((noinline)) int wait_deep(int level)
{
    if (level == 0) {
        moment_wait();
        return 0;
    }
    return wait_deep(level - 1) + (total != 0);
}

static void find_agent(void)
{
    char line[4096 + 128];
    FILE *file = fopen("/proc/self/maps", "re");
    agent_low = 0;
    arena = 0;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        unsigned long low;
        unsigned long high;
        if (strstr(line, "libsojourn-agent") != NULL && strstr(line, " r-xp ") != NULL &&
            sscanf(line, "%lx-%lx", &low, &high) == 2) {
            agent_low = low;
            agent_high = high;
        } else if (arena == 0 && strstr(line, ".arena") != NULL) {
            arena = strtoul(line, NULL, 16);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

static bool is_agent(uint64_t pc)
{
    return pc >= agent_low && pc < agent_high;
}

/* True if the next instruction calls the agent through an address in a register. */
static bool calls_agent(const greg_t *registers)
{
    static const int numbers[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                  REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15};
    const unsigned char *code = (const unsigned char *)registers[REG_RIP];
    const int high = code[0] == 0x41 ? 8 : 0;
    code += high != 0 ? 1 : 0;
    return code[0] == 0xff && (code[1] & 0xf8) == 0xd0 &&
           is_agent((uint64_t)registers[numbers[high + (code[1] & 7)]]);
}

static uint64_t find_tag(const ElfW(Dyn) * entry, int64_t tag)
{
    while (entry->d_tag != DT_NULL && entry->d_tag != tag) {
        entry++;
    }
    return entry->d_un.d_val;
}

static void on_step(int signal, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    bool is_there = false;
    (void)signal;
    (void)info;
    if (goal == GOAL_CALL) {
        is_there = calls_agent(registers);
        if (is_there) {
            atomic_store(&is_unsafe, false);
            wait_deep(depth);
        }
    } else if (goal == GOAL_ENTRY) {
        const struct r_debug *loader = (const struct r_debug *)find_tag(_DYNAMIC, DT_DEBUG);
        is_there = is_agent((uint64_t)registers[REG_RIP]) && loader->r_state == RT_CONSISTENT;
        if (is_there) {
            say("there\n");
            while (memcmp((const void *)(uintptr_t)&moment_step, head, HEAD_BYTES) != 0) {
                usleep(1000);
            }
        }
    }
    if (is_there || goal == GOAL_NONE) {
        goal = GOAL_NONE;
        registers[REG_EFL] &= ~TRAP_FLAG;
    }
}

static void run_steps(void)
{
    __asm__ volatile("sub $128, %%rsp\n\tpushfq\n\torq %0, (%%rsp)\n\tpopfq\n\tadd $128, %%rsp"
                     :
                     : "i"(TRAP_FLAG)
                     : "cc", "memory");
}

static void before_fork(void)
{
    if (waits_in_fork) {
        moment_wait();
    }
}

/* This handler is registered before the agent's, so it is called first. */
static void after_fork(void)
{
    if (goal == GOAL_CALL) {
        run_steps();
    }
}

static int count_strange(const struct link_map *map, uint64_t table, uint64_t bytes)
{
    const ElfW(Rela) *slots = (const ElfW(Rela) *)table;
    int count = 0;
    for (size_t i = 0; i < bytes / sizeof(*slots); i++) {
        Dl_info info;
        const uint64_t type = ELF64_R_TYPE(slots[i].r_info);
        void *const *slot = (void *const *)(map->l_addr + slots[i].r_offset);
        count += (type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT) && *slot != NULL &&
                 dladdr(*slot, &info) == 0;
    }
    return count;
}

/* Returns how many import slots of a module lead to code outside all modules. */
static int count_strange_slots(const struct link_map *map)
{
    return count_strange(map, find_tag(map->l_ld, DT_RELA), find_tag(map->l_ld, DT_RELASZ)) +
           count_strange(map, find_tag(map->l_ld, DT_JMPREL), find_tag(map->l_ld, DT_PLTRELSZ));
}

static void load_waiting(void)
{
    void *handle = dlopen(waiting, RTLD_NOW);
    int (*count)(void) = handle != NULL ? (int (*)(void))dlsym(handle, "moment_initialised") : NULL;
    printf("initialised %d, strange %d\n", count != NULL ? count() : -1,
           handle != NULL ? count_strange_slots(handle) : -1);
    fflush(stdout);
}

static void fork_somehow(char order)
{
    while ((order == 'u' || order == 'h') && atomic_load(&unsafe_threads) != 2) {
        usleep(1000);
    }
    if (order == 'u') {
        say("there\n");
        raise(SIGUSR2);
    }
    depth = order == 'd' ? DEEP : 0;
    goal = order == 'h' ? GOAL_NONE : GOAL_CALL;
    waits_in_fork = order == 'h';
    const pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    waits_in_fork = false;
    waitpid(pid, NULL, 0);
}

static int stay_in_list(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)info;
    (void)size;
    (void)unused;
    moment_wait();
    return 1;
}

/* The ballast makes the end take a while: the kernel frees it when the process has lost its memory
 * and still runs. */
static void end_late(void)
{
    (void)mmap(NULL, BALLAST_BYTES, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    say("there\n");
    await_giving_back();
    _exit(ENDS_WITH);
}

static void outlive_first(void)
{
    pthread_join(first, NULL);
    say("there\n");
    read_orders();
    _exit(total != 0 ? 0 : 1);
}

static void obey(char order)
{
    find_agent();
    switch (order) {
    case 'l':
        goal = GOAL_ENTRY;
        run_steps();
        if (dlopen(module, RTLD_NOW) == NULL) {
            say("not loaded\n");
        }
        break;
    case 'c':
        say("there\n");
        await_giving_back();
        usleep(delay_us);
        load_waiting();
        break;
    case 'w':
        load_waiting();
        break;
    case 'e':
        end_late();
        break;
    case 't':
        outlive_first();
        break;
    case 'p':
        (void)dl_iterate_phdr(stay_in_list, NULL);
        break;
    default:
        fork_somehow(order);
        break;
    }
    if (goal != GOAL_NONE) {
        say("never there\n");
        goal = GOAL_NONE;
    }
    say("done\n");
}

static void *obey_all(void *unused)
{
    char order;
    while (read(orders[0], &order, 1) == 1) {
        obey(order);
    }
    return unused;
}

static void *work(void *unused)
{
    for (;;) {
        for (unsigned long i = 0; i < 100; i++) {
            moment_step(i);
        }
        usleep(1000);
        if (atomic_load(&is_unsafe)) {
            raise(SIGUSR1);
        }
    }
    return unused;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    pthread_t threads[2];
    memcpy(head, (const void *)(uintptr_t)&moment_step, HEAD_BYTES);
    module = argc > 1 ? argv[1] : NULL;
    waiting = argc > 2 ? argv[2] : NULL;
    delay_us = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
    first = pthread_self();
    alarm(LIFETIME_S);
    if (pipe(orders) != 0 || pipe(resume_pipe) != 0 || sigaction(SIGTRAP, &action, NULL) != 0 ||
        signal(SIGINT, SIG_IGN) == SIG_ERR || signal(SIGUSR1, stay_unsafe) == SIG_ERR ||
        signal(SIGUSR2, stay_unsafe) == SIG_ERR ||
        pthread_atfork(before_fork, after_fork, NULL) != 0 ||
        pthread_create(&threads[0], NULL, obey_all, NULL) != 0 ||
        pthread_create(&threads[1], NULL, work, NULL) != 0) {
        return 1;
    }
    say("ready\n");
    read_orders();
    close(orders[1]);
    return pthread_join(threads[0], NULL) == 0 && total != 0 ? 0 : 1;
}
