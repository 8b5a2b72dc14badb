/* What signal_places.c knows of AArch64. */
#ifndef SJ_TESTS_SAMPLES_PLACES_AARCH64_H
#define SJ_TESTS_SAMPLES_PLACES_AARCH64_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

/* Steps come at any moment, so some interrupt the recorder where it makes room. */
enum { STEPS = 800, STEPS_FOR_ONE_OUTSIDE = 4 };
enum { RESTORER_FLAG = 0 }; /* handlers return to code of the kernel's */
enum { REFUSED = SIGILL };  /* the signal of refuse() */
#define OWN_RESTORER 0

typedef struct stepper {
    pthread_t stepped;
    const volatile long *steps;
    volatile int has_begun;
    volatile int is_over;
} stepper;

static uintptr_t *pc_of(void *context)
{
    return (uintptr_t *)&((ucontext_t *)context)->uc_mcontext.pc;
}

/* Fails in one of its own instructions. */
__attribute__((noipa)) int refuse(int zero)
{
    __asm__ volatile(".inst 0");
    return zero;
}

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

/* Sends one signal behind the other. */
static void *send_steps(void *context)
{
    stepper *to = context;
    while (!to->has_begun) {
    }
    while (*to->steps < STEPS) {
        const long before = *to->steps;
        pthread_kill(to->stepped, SIGTRAP);
        while (*to->steps == before) {
        }
    }
    to->is_over = 1;
    return NULL;
}

/* There is no trap flag: another thread interrupts the calls. */
static long call_stepped(long (*function)(long), long calls, const volatile long *steps)
{
    stepper stepped = {.stepped = pthread_self(), .steps = steps};
    pthread_t sender;
    long sum = 0;
    pthread_create(&sender, NULL, send_steps, &stepped);
    stepped.has_begun = 1;
    for (long i = 0; i < calls || !stepped.is_over; i++) {
        const long result = function(i);
        sum += i < calls ? result : 0;
    }
    pthread_join(sender, NULL);
    return sum;
}

#endif
