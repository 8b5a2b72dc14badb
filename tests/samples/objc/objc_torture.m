/* Sends every kind of message and checks the results. Exit status 0: all checks passed.
 * objc_torture [ROUNDS]. If a switch library is preloaded (tests/agent/runtimes/objc_switch.c), the
 * program asks it to hook and unhook meanwhile: OBJC_SWITCH=start, late or loop. */
#import "objc_kinds.h"
#include "../truth.h"
#include <dlfcn.h>
#include <execinfo.h>
#include <objc/runtime.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { WORKERS = 4, STACK_BYTES = 256 * 1024, WAIT_ROUNDS = 2000, WAIT_US = 5000 };
enum { LANE_SIGNAL = 20, LANE_COROUTINE = 21, LANE_LEAVER = 19, LANE_WORKER = 10 };

/* For the loop that hooks and unhooks: its least number of turns, and which turns last a whole
 * step. */
enum { TURNS = 200, LONG_TURNS = 8 };

static int failures;
static int steps; /* finished parts of rounds; this variable and the next are atomic */
static int turns;
static int rounds_done;

#define CHECK(...)                                                                                 \
    do {                                                                                           \
        if (!(__VA_ARGS__)) {                                                                      \
            failures++;                                                                            \
            printf("FAILED line %d: %s\n", __LINE__, #__VA_ARGS__);                                \
        }                                                                                          \
    } while (0)

static void check_values(SmpBase *base, SmpDerived *derived)
{
    CHECK([base ints:1 b:2 c:3 d:4 e:5 f:6 g:7 reals:1 j:2 k:3 l:4 m:5 n:6 o:7 p:8 q:9 r:10] == 965);
    Big big = {{1, 2, 3, 4}, {1, 2, 3, 4, 5, 6}};
    big = [base big:big times:4];
    CHECK(big.reals[0] == 5 && big.reals[3] == 4 && big.whole[5] == 14);
    const Mixed mixed = [derived mixed:4];
    CHECK(mixed.whole == 5 && mixed.real == 7.5);
    const Pair pair = [base pair];
    CHECK(pair.x == 1.25f && pair.y == 2.5f);
    CHECK([base half:3.0f] == 1.5f);
    CHECK([base triple:2.0L] == 6.0L);
    const _Complex long double number = [base complexNumber];
    CHECK(creall(number) == 1 && cimagl(number) == 2);
    const _Complex double conjugated = [base conjugate:3.0 + 4.0i];
    CHECK(creal(conjugated) == 3 && cimag(conjugated) == -4);
    CHECK([base sumOf:4, 1.0, 2.0, 3.0, 4.5] == 10);
    const Vector a = {1, 2, 3, 4};
    const Vector b = {10, 20, 30, 40};
    const Vector sum = [base add:a to:b];
    CHECK(sum[0] == 11 && sum[1] == 22 && sum[2] == 33 && sum[3] == 44);
    CHECK([base inCategory:1] == 2 && [SmpDerived classInCategory] == 7);
    CHECK([[base tail:derived] isEqual:@"described"]);
    SmpBase *nothing = nil;
    CHECK([nothing recurse:5] == 0);
}

/* Calls code that was looked up without a message. With OBJC_ONLY_SENDS, check_ways omits this. */
static void check_codes(SmpBase *base)
{
#ifndef PLAIN_FOUNDATION
    NSInvocation *invocation = [NSInvocation
        invocationWithMethodSignature:[base methodSignatureForSelector:@selector(half:)]];
    float value = 8;
    float half = 0;
    [invocation setSelector:@selector(half:)];
    [invocation setArgument:&value atIndex:2];
    [invocation invokeWithTarget:base];
    [invocation getReturnValue:&half];
    CHECK(half == 4);
#endif
    const IMP code = [base methodForSelector:@selector(recurse:)];
    CHECK(((long (*)(id, SEL, long))code)(base, @selector(recurse:), 3) == 6);
}

/* True if a method's code is the same, whichever way the program asks the runtime for it. */
__attribute__((noinline)) static int is_identical(SmpBase *base, SmpDerived *derived)
{
    const SEL selector = @selector(half:);
    const Class class = objc_getClass("SmpBase");
    const IMP code = [derived methodForSelector:selector];
    return code == class_getMethodImplementation(class, selector) &&
           code == [base methodForSelector:selector] &&
#ifndef PLAIN_FOUNDATION
           code == [SmpBase instanceMethodForSelector:selector] &&
#endif
           [SmpBase methodForSelector:@selector(answer)] ==
               class_getMethodImplementation(object_getClass(class), @selector(answer));
}

/* Asks a second time on failure. Without a PLT, a function that began before the switch still uses
 * the lookup's old address. The functions that it calls already use the new one. */
static void check_identity(SmpBase *base, SmpDerived *derived)
{
    CHECK(is_identical(base, derived) || is_identical(base, derived));
}

static void check_ways(SmpBase *base, SmpDerived *derived)
{
    CHECK([derived recurse:40] == 820);
    CHECK([derived twice:21] == 42);
    CHECK([base tailed:4] == 10 && [derived tailed:4] == 10);
    CHECK([base tailedOut:4] == 11 && [derived tailedOut:4] == 11);
    CHECK([[base performSelector:@selector(tail:) withObject:base] isEqual:@"described"]);
    if (getenv("OBJC_ONLY_SENDS") == NULL) {
        check_codes(base);
    }
    [derived half:1.0f]; /* creates the method's stub */
    check_identity(base, derived);
    NSMutableArray *array = [NSMutableArray array];
    for (int i = 0; i < 300; i++) {
        [array addObject:[NSString stringWithFormat:@"s%d", i * 7919 % 1000]];
    }
    [array sortUsingSelector:@selector(compare:)];
    CHECK([array count] == 300 && [[array objectAtIndex:0] isEqual:@"s0"]);
}

static int frames_below(SmpBase *base)
{
    void *frames[64];
    (void)base;
    return backtrace(frames, 64);
}

static void check_ends(SmpBase *base, SmpDerived *derived)
{
    static jmp_buf buffer;
    const int depth = truth_depth();
    @try {
        [derived tailedThrow];
        CHECK(0);
    } @catch (NSException *exception) {
        truth_unwind(depth);
    }
    CHECK([base catcher] == 4 && [derived catcher] == 4);
    CHECK([base finally] == 17 && [derived finally] == 17);
    if (setjmp(buffer) == 0) {
        [derived jumpTo:&buffer];
        CHECK(0);
    }
    truth_unwind(depth);
    CHECK([base recurse:10] == 55);
    @try {
        [base performSelector:@selector(noSuchSelector)];
        CHECK(0);
    } @catch (NSException *exception) {
        CHECK([[exception callStackReturnAddresses] count] > 3);
    }
    @try {
        [[NSMutableArray array] objectAtIndex:5000];
        CHECK(0);
    } @catch (NSException *exception) {
        CHECK([[exception name] isEqual:NSRangeException]);
    }
    CHECK(frames_below(base) > 3);
}

static int wait_for(SmpDerived *object)
{
    for (int i = 0; i < WAIT_ROUNDS; i++) {
        if (__atomic_load_n(&object->touched, __ATOMIC_ACQUIRE) == -1) {
            return 1;
        }
        usleep(WAIT_US);
    }
    return 0;
}

static void check_threads(void)
{
    SmpDerived *workers[WORKERS];
    SmpDerived *leaver = [SmpDerived new];
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = [SmpDerived new];
        [NSThread detachNewThreadSelector:@selector(worker:)
                                 toTarget:workers[i]
                               withObject:[NSNumber numberWithInt:LANE_WORKER + i]];
    }
    [NSThread detachNewThreadSelector:@selector(leaver:)
                             toTarget:leaver
                           withObject:[NSNumber numberWithInt:LANE_LEAVER]];
    for (int i = 0; i < WORKERS; i++) {
        CHECK(wait_for(workers[i]));
    }
    CHECK(wait_for(leaver));
}

static SmpDerived *signal_target;

static void on_signal(int number)
{
    (void)number;
    truth_lane(LANE_SIGNAL);
    CHECK([signal_target recurse:3] == 6);
    truth_lane(0);
}

static void check_signals(SmpDerived *derived)
{
    static char stack[STACK_BYTES];
    const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    signal_target = derived;
    sigaltstack(&alternate, NULL);
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 10; i++) {
        raise(SIGUSR1);
    }
}

static ucontext_t main_context;
static ucontext_t coroutine_context;
static SmpDerived *coroutine_target;

static void coroutine(void)
{
    for (int i = 0; i < 3; i++) {
        truth_lane(LANE_COROUTINE);
        CHECK([coroutine_target recurse:2] == 3);
        CHECK([coroutine_target catcher] == 4);
        truth_lane(0);
        swapcontext(&coroutine_context, &main_context);
    }
}

static void check_coroutines(SmpDerived *derived)
{
    static char stack[STACK_BYTES];
    coroutine_target = derived;
    getcontext(&coroutine_context);
    coroutine_context.uc_stack.ss_sp = stack;
    coroutine_context.uc_stack.ss_size = sizeof(stack);
    coroutine_context.uc_link = &main_context;
    makecontext(&coroutine_context, coroutine, 0);
    for (int i = 0; i < 3; i++) {
        swapcontext(&main_context, &coroutine_context);
        CHECK([derived recurse:2] == 3);
    }
}

static void check_later(void)
{
    const char *path = getenv("OBJC_BUNDLE");
    void *bundle = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (path == NULL) {
        return;
    }
    CHECK(bundle != NULL);
    id later = [objc_getClass("SmpLater") new];
    CHECK(later != nil);
    CHECK([later recurse:5] == 15);
    CHECK([[later performSelector:@selector(addedLater)] isEqual:@"later"]);
}

static int get(const int *value)
{
    return __atomic_load_n(value, __ATOMIC_ACQUIRE);
}

static void step(void)
{
    __atomic_fetch_add(&steps, 1, __ATOMIC_RELEASE);
}

/* Checks a class that no file describes: the program creates it. */
static void check_made(void)
{
    static Class made;
    if (made == Nil) {
        made = objc_allocateClassPair([SmpDerived class], "SmpMade", 0);
        CHECK(made != Nil);
        objc_registerClassPair(made);
    }
    SmpDerived *object = [[made new] autorelease];
    CHECK([object recurse:3] == 6);
    CHECK([made classInCategory] == 7);
}

static void one_round(void)
{
    NSAutoreleasePool *pool = [NSAutoreleasePool new];
    SmpBase *base = [[SmpBase new] autorelease];
    SmpDerived *derived = [[SmpDerived new] autorelease];
    check_values(base, derived);
    step();
    check_ways(base, derived);
    step();
    check_ends(base, derived);
    step();
    check_signals(derived);
    check_coroutines(derived);
    check_made();
    step();
    check_threads();
    [pool release];
}

/* Returns after a whole step (two steps have ended), or after all rounds. */
static void wait_for_step(void)
{
    const int start = get(&steps);
    while (get(&steps) - start < 2 && !get(&rounds_done)) {
        usleep(500);
    }
}

/* Switches until all rounds have ended; the rounds continue until it has switched often enough.
 * Some turns are short, so that they happen in the middle of messages. Others are long, so that
 * messages are sent at any machine load. */
static void *switcher(void *argument)
{
    void (*turn)(int) = argument;
    for (; turns < TURNS || !get(&rounds_done); __atomic_fetch_add(&turns, 1, __ATOMIC_RELEASE)) {
        turn(turns & 1);
        if (turns % LONG_TURNS == 1) {
            wait_for_step();
        } else {
            usleep(500);
        }
    }
    turn(0);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *mode = getenv("OBJC_SWITCH");
    void (*turn)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "objc_switch");
    pthread_t thread;
    const int rounds = argc > 1 ? atoi(argv[1]) : 1;
    if (mode == NULL || turn == NULL) {
        mode = "";
    }
    if (strcmp(mode, "start") == 0) {
        turn(1);
    }
    one_round();
    check_later();
    if (strcmp(mode, "late") == 0) {
        turn(1);
    } else if (strcmp(mode, "loop") == 0) {
        pthread_create(&thread, NULL, switcher, (void *)turn);
    }
    const int least_turns = strcmp(mode, "loop") == 0 ? TURNS : 0;
    /* pause between rounds, for a test that takes long */
    const char *rest_us = getenv("OBJC_REST_US");
    for (int i = 1; i < rounds || get(&turns) < least_turns; i++) {
        one_round();
        if (rest_us != NULL) {
            usleep((useconds_t)atoi(rest_us));
        }
    }
    if (least_turns != 0) {
        __atomic_store_n(&rounds_done, 1, __ATOMIC_RELEASE);
        pthread_join(thread, NULL);
    } else if (mode[0] != '\0') {
        turn(0);
    }
    one_round();
    void (*report)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "objc_switch_report");
    if (report != NULL) {
        report();
    }
    printf("%d failures\n", failures);
    return failures == 0 ? 0 : 1;
}
