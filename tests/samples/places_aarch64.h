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
