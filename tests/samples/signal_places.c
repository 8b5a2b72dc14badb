/* Checks what a program's signal handlers see of the places that they interrupt. Each argument
 * selects a situation. Prints only what is the same in every run. */
#ifdef OWN_UNWINDER
#include "unwinders.h"
#else
#include <execinfo.h>
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noipa))

#if defined(__aarch64__)
#include "places_aarch64.h"
#else
#include "places_x86_64.h"
#endif

extern const char __executable_start[];
extern const char etext[];

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

enum { CALLS = 80, FRAMES = 40, STACK_BYTES = 65536 };

static volatile long steps, outside, cut;
static int is_borrowed; /* a tracer may run its own code on this thread */
static volatile int *page;
static uintptr_t seen, seen_address;

NOINLINE int load(volatile int *from)
{
    return *from;
}

/* leaf and middle are aligned, so that neither is within the other's 64 bytes. */
NOINLINE __attribute__((aligned(64))) long leaf(long x)
{
    __asm__ volatile("");
    return x + 1;
}

NOINLINE __attribute__((aligned(64))) long middle(long x)
{
    return leaf(x) + leaf(x + 1);
}

static int is_program(const void *pc)
{
    return (const char *)pc >= __executable_start && (const char *)pc < etext;
}

static int lies_in(uintptr_t pc, const void *function)
{
    return pc - (uintptr_t)function < 16;
}

#ifdef LOOKS_BEFORE

/* This unwinder subtracts one byte from each pc, even from an interrupted one. So it fails at many
 * instructions of the program and of the recorder. The test judges it only in stubs, which are in
 * no module. */
static int is_judged(const void *pc)
{
    Dl_info info;
    return dladdr(pc, &info) == 0;
}

#else

static int is_judged(const void *pc)
{
    (void)pc;
    return 1;
}

#endif

static int lies_in_middle(const void *pc)
{
    return (uintptr_t)pc - (uintptr_t)middle < 64;
}

/* True if the interrupted pc is among the frames, and the program's calls are behind it. Code
 * outside the program is called by leaf or middle, leaf is called by middle, and all stacks end in
 * main and _start. */
static int is_whole(void *const *frames, int count, const void *pc)
{
    const void *found[FRAMES] = {NULL};
    int in_program = 0;
    int at = 0;
    while (at < count && frames[at] != pc) {
        at++;
    }
    for (; at < count; at++) {
        if (is_program(frames[at])) {
            found[in_program++] = frames[at];
        }
    }
    const int in_leaf = lies_in((uintptr_t)found[0], leaf);
    return in_program >= 2 &&
           (is_program(pc) || is_borrowed || in_leaf || lies_in_middle(found[0])) &&
           (!in_leaf || lies_in_middle(found[1]));
}

/* The frames are those of the handler, the signal frame, the interrupted place, and finally
 * main. */
static void step(int number, siginfo_t *info, void *context)
{
    void *frames[FRAMES];
    const int count = backtrace(frames, FRAMES);
    const void *pc = (void *)*pc_of(context);
    (void)number;
    (void)info;
    steps++;
    outside += !is_program(pc);
    cut += is_judged(pc) && !is_whole(frames, count, pc);
}

static long run_stepped(void)
{
    return call_stepped(middle, CALLS, &steps);
}

/* True if enough of the steps were outside the program. */
static int is_outside(void)
{
    return outside * STEPS_FOR_ONE_OUTSIDE > steps;
}

/* True if `pc` is in no module or in the recorder's module. */
static int is_strange(const void *pc)
{
    Dl_info info;
    return dladdr(pc, &info) == 0 || strstr(info.dli_fname, "sojourn-agent") != NULL;
}

static volatile long strange, unlike, leaves_at, stepped;
static long (*volatile callee)(long);

NOINLINE int landing(void)
{
    return 77;
}

/* Counts handlers that see a pc of the recorder, or other registers than the program's while they
 * interrupt leaf. At step `leaves_at`, redirects a thread in leaf to landing(). */
static void step_marked(int number, siginfo_t *info, void *context)
{
    uintptr_t *pc = pc_of(context);
    (void)number;
    (void)info;
    strange += is_strange((void *)*pc);
    unlike += lies_in(*pc, leaf) && !has_marks(context);
    if (++stepped == leaves_at && lies_in(*pc, leaf)) {
        *pc = (uintptr_t)landing;
        end_steps(context);
    }
}

NOINLINE long call_library(long x)
{
    return ldiv(x, 1).quot + 1;
}

/* The recorder allocates memory for a thread at its first call, and at some later calls. */
static void *call_in_thread(void *function)
{
    enum { MANY = 150 };
    static long sum;
    stepper stepped_by;
    sum = 0;
    callee = (long (*)(long))function;
    begin_steps(&stepped_by, &stepped, MARKED_STEPS);
    for (long i = 0; i < MANY || !is_stepped_enough(&stepped_by); i++) {
        const int is_marked = i == 0 || i >= STEPPED_FROM;
        const long result = is_marked ? call_marked((long (*)(long))function, i) : callee(i);
        sum += i < MANY ? result : 0;
    }
    end_all_steps(&stepped_by);
    return &sum;
}

static long run_in_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    void *result = NULL;
    pthread_create(&thread, NULL, function, argument);
    pthread_join(thread, &result);
    return *(const long *)result;
}

static void run_marked(void)
{
    long sum = run_in_thread(call_in_thread, (void *)leaf);
    sum += run_in_thread(call_in_thread, (void *)call_library);
    printf("marked: sum %ld, strange %ld, unlike %ld\n", sum, strange, unlike);
}

static void set_action(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    struct sigaction old;
    sigaction(number, &action, NULL);
    sigaction(number, NULL, &old);
    if (old.sa_sigaction != handler || old.sa_flags != (action.sa_flags | RESTORER_FLAG)) {
        puts("another action");
    }
}

static void count_step(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    (void)context;
    stepped++;
}

/* Steps through a first call on an alternate stack that is only slightly larger than the kernel
 * needs. Checks that nothing has written below that stack. */
static void *call_on_small_stack(void *function)
{
    enum { BELOW = 4096, LITTLE = 1024, MOST = 65536, MARKED = 0xa5 };
    static unsigned char memory[BELOW + MOST];
    static long changed;
    const stack_t stack = {.ss_sp = memory + BELOW, .ss_size = getauxval(AT_MINSIGSTKSZ) + LITTLE};
    memset(memory, MARKED, BELOW);
    sigaltstack(&stack, NULL);
    call_in_thread(function);
    for (int i = 0; i < BELOW; i++) {
        changed += memory[i] != MARKED;
    }
    return &changed;
}

static void run_small_stack(void)
{
    set_action(SIGTRAP, count_step, SA_ONSTACK);
    const long changed = run_in_thread(call_on_small_stack, (void *)leaf);
    printf("small stack: stepped %d, changed %ld\n", stepped > CALLS, changed);
}

/* The handler redirects the thread at one step. Later calls must not be affected. */
static void *leave_in_thread(void *function)
{
    static long sums[2];
    sums[0] = call_marked((long (*)(long))function, 0);
    leaves_at = 0;
    for (long i = 0; i < CALLS; i++) {
        sums[1] += leaf(i) != i + 1;
    }
    return sums;
}

static void run_left(void)
{
    enum { SHORTER = 20, STRIDE = 61 };
    long left = 0;
    long wrong = 0;
    for (long at = 1; at < SHORTER * STRIDE; at += at < SHORTER ? 1 : STRIDE) {
        leaves_at = at;
        stepped = 0;
        const long result = run_in_thread(leave_in_thread, (void *)leaf);
        left += result == 77;
        wrong += result != 77 && result != 1;
    }
    printf("left: %d, wrong %ld, strange %ld\n", left > 1, wrong, strange);
}

static void print_steps(const char *how)
{
    const long sum = run_stepped();
    printf("%s: sum %ld, stepped %d, outside %ld, cut %ld\n", how, sum, steps > CALLS, outside,
           cut);
}

/* Installs a handler without the C library. Uses the program's own restorer where a program can
 * have one. */
static void set_raw(int number, void (*function)(int, siginfo_t *, void *))
{
    const struct {
        void (*handler)(int, siginfo_t *, void *);
        unsigned long flags;
        const void *restorer;
        unsigned long mask;
    } action = {function, SA_SIGINFO | RESTORER_FLAG, OWN_RESTORER, 0};
    syscall(SYS_rt_sigaction, number, &action, NULL, sizeof(action.mask));
}

/* Repairs the fault: the instruction runs again at the same place. */
static void open_page(int number, siginfo_t *info, void *context)
{
    (void)number;
    seen = *pc_of(context);
    seen_address = (uintptr_t)info->si_addr;
    mprotect((void *)(uintptr_t)page, 4096, PROT_READ | PROT_WRITE);
}

/* Redirects the thread to landing(), which returns in place of the function that failed. */
static void go_elsewhere(int number, siginfo_t *info, void *context)
{
    (void)number;
    seen = *pc_of(context);
    seen_address = (uintptr_t)info->si_addr;
    *pc_of(context) = (uintptr_t)landing;
}

/* Raises a second signal in the handler of a fault, then repairs the fault. */
static void raise_nested(int number, siginfo_t *info, void *context)
{
    raise(SIGRTMIN);
    open_page(number, info, context);
}

static void count(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    (void)context;
    steps += leaf(0);
}

static sigjmp_buf behind_null;

__attribute__((optimize("optimize-sibling-calls"))) NOINLINE long call_at_end(long x)
{
    return callee(x + 1);
}

static void leave_null(int number, siginfo_t *info, void *context)
{
    (void)number;
    seen = *pc_of(context);
    seen_address = (uintptr_t)info->si_addr;
    siglongjmp(behind_null, 1);
}

static void run_null_call(void)
{
    set_action(SIGSEGV, leave_null, 0);
    if (sigsetjmp(behind_null, 1) == 0) {
        call_at_end(1);
    }
    printf("null: place %d, address %d\n", seen == 0, seen_address == 0);
}

static void run_faults(void)
{
    run_null_call();
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    set_action(SIGSEGV, open_page, SA_ONSTACK);
    const int loaded = load(page);
    printf("opened %d, in load %d, address %d\n", loaded, lies_in(seen, load),
           seen_address == (uintptr_t)page);
    mprotect((void *)(uintptr_t)page, 4096, PROT_NONE);
    set_action(SIGRTMIN, count, 0);
    set_action(SIGSEGV, raise_nested, SA_NODEFER);
    const int again = load(page);
    printf("nested %d, in load %d, counted %ld\n", again, lies_in(seen, load), steps);
    set_action(REFUSED, go_elsewhere, 0);
    const int landed = refuse(loaded);
    printf("elsewhere %d, in refuse %d, address %d\n", landed, lies_in(seen, refuse),
           seen_address == seen);
    signal(REFUSED, SIG_DFL);
    set_action(SIGSEGV, go_elsewhere, (int)SA_RESETHAND);
    printf("reset %d", load(NULL));
    struct sigaction now;
    sigaction(SIGSEGV, NULL, &now);
    printf(" %d\n", now.sa_handler == SIG_DFL && (now.sa_flags & (int)SA_RESETHAND) != 0);
}

static sigjmp_buf behind_end;
static uintptr_t last_sp;
static long ended;

/* The stack overflowed. The fault must be at the function's own place and at the address of its
 * first push. */
static void leave_end(int number, siginfo_t *info, void *context)
{
    (void)number;
    outside += !lies_in(*pc_of(context), leaf);
    cut += (uintptr_t)info->si_addr != last_sp - FIRST_PUSH;
    siglongjmp(behind_end, 1);
}

/* Calls leaf with `space` bytes of stack left above a guard page. */
static NOINLINE long call_near_end(const char *stack, long space)
{
    last_sp = (uintptr_t)stack + (uintptr_t)space;
    return call_on_stack(leaf, last_sp, space);
}

static void run_near_ends(void)
{
    enum { GUARD = 4096, LEAST = 208, MOST = 4096, STEP = 48 };
    char *low = mmap(NULL, 2 * GUARD + STACK_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    volatile long called = 0;
    mprotect(low, GUARD, PROT_NONE);
    set_action(SIGSEGV, leave_end, SA_ONSTACK);
    for (volatile long space = LEAST; space < MOST; space += STEP) {
        if (sigsetjmp(behind_end, 1) == 0) {
            called += call_near_end(low + GUARD, space) == space + 1;
        }
    }
    printf("ends: called %d, outside %ld, elsewhere %ld\n", called > 0, outside, cut);
}

static void leave_end_of_library(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    outside += is_strange((void *)*pc_of(context));
    siglongjmp(behind_end, 1);
}

/* Makes the first call of a thread with few bytes of stack left. At this call the recorder
 * allocates memory for the thread. */
static void *call_library_near_end(void *sp)
{
    static char alternate[STACK_BYTES];
    static long result;
    const stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
    sigaltstack(&stack, NULL);
    result = sigsetjmp(behind_end, 1) == 0 ? call_on_stack(call_library, (uintptr_t)sp, 1) : 0;
    return &result;
}

static void run_near_ends_of_library(void)
{
    enum { GUARD = 4096, LEAST = 160, MOST = 416, STEP = 16 };
    char *low = mmap(NULL, 2 * GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(low, GUARD, PROT_NONE);
    set_action(SIGSEGV, leave_end_of_library, SA_ONSTACK);
    ldiv(1, 1); /* binds the function, so that its address is known later */
    for (long space = LEAST; space < MOST; space += STEP) {
        ended += run_in_thread(call_library_near_end, low + GUARD + space) == 0;
    }
    printf("ends: ended %d, outside %ld\n", ended > 1, outside);
}

static volatile sig_atomic_t is_over;

static void end(int number)
{
    (void)number;
    is_over = 1;
}

/* Returns the handler that the kernel has registered. */
static const void *find_handler(int number)
{
    struct {
        const void *handler;
        unsigned long flags;
        const void *restorer;
        unsigned long mask;
    } action = {NULL, 0, NULL, 0};
    syscall(SYS_rt_sigaction, number, NULL, &action, sizeof(action.mask));
    return action.handler;
}

static int is_own(int number, const void *handler)
{
    return find_handler(number) == handler;
}

/* Installs two handlers in turn. What the kernel has registered for each must stay the same. */
static void run_turns(void)
{
    const void *first[2] = {NULL, NULL};
    int changed = 0;
    for (int i = 0; i < 40; i++) {
        set_action(SIGUSR1, i % 2 == 0 ? count : open_page, 0);
        const void *handler = find_handler(SIGUSR1);
        if (i < 2) {
            first[i] = handler;
        }
        changed += handler != first[i % 2];
    }
    printf("turns: changed %d, same %d\n", changed, first[0] == first[1]);
}

/* Changes a handler all the time. Returns how often sigaction reported another handler than the one
 * installed. */
static void *change_handlers(void *unused)
{
    long failed = 0;
    (void)unused;
    for (int i = 0; !is_over; i++) {
        struct sigaction now;
        set_action(SIGUSR2, i % 2 == 0 ? count : open_page, 0);
        sigaction(SIGUSR2, NULL, &now);
        failed += now.sa_sigaction != (i % 2 == 0 ? count : open_page);
    }
    return (void *)failed; /* NOLINT(performance-no-int-to-ptr) */
}

static unsigned char first_byte(void)
{
    return *(const volatile unsigned char *)leaf;
}

/* Loads the unwinder once the agent has hooked the program. The program's first byte was
 * `before`. */
static void load_late(unsigned char before)
{
    void *frames[2];
    while (first_byte() == before && !is_over) {
        usleep(1000);
    }
    backtrace(frames, 2);
}

/* Makes steps with a handler that the agent does not know. The steps pass many places outside the
 * program while a tracer attaches and detaches. Ends at SIGTERM. */
static void run_raw_until_told(int loads_late)
{
    enum { MANY = 2000 };
    int has_told = 0;
    const unsigned char before = first_byte();
    is_borrowed = 1;
    signal(SIGTERM, end);
    puts("ready");
    fflush(stdout);
    if (loads_late) {
        load_late(before);
    }
    while (!is_over) {
        /* again, because an attaching tracer has adopted the previous handler */
        set_raw(SIGTRAP, step);
        run_stepped();
        if (!has_told && outside > MANY) {
            has_told = puts("stepped") >= 0 && fflush(stdout) == 0;
        }
    }
    printf("raw: cut %ld\n", cut);
}

/* Makes faults and steps until SIGTERM. A tracer attaches and detaches meanwhile. */
static void run_until_told(void)
{
    long rounds = 0;
    long failed = 0;
    pthread_t changer;
    void *unlike = NULL;
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    signal(SIGTERM, end);
    set_action(SIGTRAP, step, 0);
    set_action(SIGSEGV, open_page, 0);
    pthread_create(&changer, NULL, change_handlers, NULL);
    puts("ready");
    fflush(stdout);
    for (; !is_over; rounds++) {
        mprotect((void *)(uintptr_t)page, 4096, PROT_NONE);
        failed += load(page) != 0 || !lies_in(seen, load);
        run_stepped();
    }
    pthread_join(changer, &unlike);
    printf("rounds %d, failed %ld, outside %d, own %d, unlike %ld\n", rounds > 0, failed,
           is_outside(), is_own(SIGTRAP, step) && is_own(SIGTERM, end), (long)unlike);
}

/* Stays once at a place outside the program, until a byte arrives on the input. */
static void hold(int number, siginfo_t *info, void *context)
{
    static int has_held;
    char told;
    (void)number;
    (void)info;
    steps++;
    if (!has_held && !is_program((void *)*pc_of(context))) {
        has_held = 1;
        puts("held");
        fflush(stdout);
        has_held += (int)read(STDIN_FILENO, &told, 1);
        is_over = 1;
    }
}

/* A handler that the agent does not know returns into a stub after the agent has detached. */
static void run_held(void)
{
    long sum = 0;
    puts("ready");
    fflush(stdout);
    while (!is_over) {
        /* again, because an attaching tracer has adopted the previous handler */
        set_raw(SIGTRAP, hold);
        sum = run_stepped();
    }
    printf("held: sum %ld\n", sum);
}

int main(int count_of_arguments, char **arguments)
{
    const stack_t stack = {.ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES};
    void *frames[2];
    sigaltstack(&stack, NULL);
    if (count_of_arguments < 2) {
        return 2;
    }
    if (strcmp(arguments[1], "attached_late") == 0) {
        run_raw_until_told(1);
        return 0;
    }
    backtrace(frames, 2); /* makes the C library load its unwinder */
    if (strcmp(arguments[1], "step") == 0) {
        set_action(SIGTRAP, step, 0);
        print_steps("step");
    } else if (strcmp(arguments[1], "marked") == 0) {
        set_action(SIGTRAP, step_marked, 0);
        run_marked();
    } else if (strcmp(arguments[1], "left") == 0) {
        set_action(SIGTRAP, step_marked, 0);
        run_left();
    } else if (strcmp(arguments[1], "ends") == 0) {
        run_near_ends();
    } else if (strcmp(arguments[1], "small_stack") == 0) {
        run_small_stack();
    } else if (strcmp(arguments[1], "library_ends") == 0) {
        run_near_ends_of_library();
    } else if (strcmp(arguments[1], "stack") == 0) {
        set_action(SIGTRAP, step, SA_ONSTACK);
        print_steps("stack");
    } else if (strcmp(arguments[1], "raw") == 0 || strcmp(arguments[1], "warm") == 0) {
        if (arguments[1][0] == 'w') {
            middle(0); /* the recorder allocates the thread's records before the first step */
        }
        set_raw(SIGTRAP, step);
        const long sum = run_stepped();
        printf("raw: sum %ld, stepped %d, cut %ld\n", sum, steps > CALLS, cut);
    } else if (strcmp(arguments[1], "turns") == 0) {
        run_turns();
    } else if (strcmp(arguments[1], "held") == 0) {
        run_held();
    } else if (strcmp(arguments[1], "attached_raw") == 0) {
        run_raw_until_told(0);
    } else if (strcmp(arguments[1], "attached") == 0) {
        run_until_told();
    } else {
        run_faults();
    }
    return 0;
}
