/* The AArch64 part of signal_places.c. */
#ifndef SJ_TESTS_SAMPLES_PLACES_AARCH64_H
#define SJ_TESTS_SAMPLES_PLACES_AARCH64_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

/* Steps come at any moment. So some of them interrupt the recorder while it allocates a slot for
 * the thread. */
enum { STEPS = 800, STEPS_FOR_ONE_OUTSIDE = 4 };
enum { RESTORER_FLAG = 0 }; /* handlers return to code of the kernel (the vDSO) */
enum { REFUSED = SIGILL };  /* the signal that refuse() raises */
#define OWN_RESTORER 0

typedef struct stepper {
    pthread_t sender;
    pthread_t stepped;
    long last;
    const volatile long *steps;
    volatile int has_begun;
    volatile int is_over;
} stepper;

static uintptr_t *pc_of(void *context)
{
    return (uintptr_t *)&((ucontext_t *)context)->uc_mcontext.pc;
}

/* Raises a signal at one of its own instructions. */
__attribute__((noipa)) int refuse(int zero)
{
    __asm__ volatile(".inst 0");
    return zero;
}

enum { FIRST_PUSH = 8 }; /* distance from call_on_stack's `sp` to the first word below it */

static __attribute__((noinline)) long call_on_stack(long (*function)(long), uintptr_t sp,
                                                    long argument)
{
    register long result __asm__("x0") = argument;
    __asm__ volatile("mov x19, sp; mov sp, %2; blr %1; mov sp, x19"
                     : "+r"(result)
                     : "r"(function), "r"(sp)
                     : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12",
                       "x13", "x14", "x15", "x16", "x17", "x19", "x30", "memory", "cc");
    return result;
}

/* Sends the next signal as soon as the previous one has been handled. */
static void *send_steps(void *context)
{
    stepper *to = context;
    while (!to->has_begun) {
    }
    while (*to->steps < to->last) {
        const long before = *to->steps;
        pthread_kill(to->stepped, SIGTRAP);
        while (*to->steps == before) {
        }
    }
    to->is_over = 1;
    return NULL;
}

/* AArch64 has no trap flag, so another thread interrupts the calls. */
static void begin_steps(stepper *stepped, const volatile long *steps, long more)
{
    *stepped = (stepper){.stepped = pthread_self(), .steps = steps, .last = *steps + more};
    pthread_create(&stepped->sender, NULL, send_steps, stepped);
    stepped->has_begun = 1;
}

static int is_stepped_enough(const stepper *stepped)
{
    return stepped->is_over;
}

static void end_all_steps(stepper *stepped)
{
    pthread_join(stepped->sender, NULL);
}

static long call_stepped(long (*function)(long), long calls, const volatile long *steps)
{
    stepper stepped;
    long sum = 0;
    begin_steps(&stepped, steps, STEPS);
    for (long i = 0; i < calls || !is_stepped_enough(&stepped); i++) {
        const long result = function(i);
        sum += i < calls ? result : 0;
    }
    end_all_steps(&stepped);
    return sum;
}

enum { STEPPED_FROM = 0, MARKED_STEPS = 60, MARK = 0x5a5a };

/* Calls `function` with marks in registers that neither the function nor its caller changes. */
static __attribute__((noipa)) long call_marked(long (*function)(long), long argument)
{
    register long result __asm__("x0") = argument;
    __asm__ volatile("mov x9, %1; mov x2, %2; mov x3, x2; mov x4, x2; mov x5, x2; mov x6, x2;"
                     "mov x7, x2; mov x19, x2; mov x20, x2; mov x21, x2; mov x22, x2; mov x23, x2;"
                     "mov x24, x2; mov x25, x2; mov x26, x2; mov x27, x2; mov x28, x2; blr x9"
                     : "+r"(result)
                     : "r"(function), "i"(MARK)
                     : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12",
                       "x13", "x14", "x15", "x16", "x17", "x19", "x20", "x21", "x22", "x23", "x24",
                       "x25", "x26", "x27", "x28", "x30", "memory", "cc");
    return result;
}

static void end_steps(void *context)
{
    (void)context;
}

static int has_marks(const void *context)
{
    static const unsigned char marked[] = {2,  3,  4,  5,  6,  7,  19, 20,
                                           21, 22, 23, 24, 25, 26, 27, 28};
    int count = 0;
    for (unsigned i = 0; i < sizeof(marked); i++) {
        count += ((const ucontext_t *)context)->uc_mcontext.regs[marked[i]] == MARK;
    }
    return count == (int)sizeof(marked);
}

#endif
