/* Coroutines on stacks of their own (makecontext), interleaved with calls on the thread's stack. */
#include "truth.h"

#include <stdlib.h>
#include <ucontext.h>

enum { COROUTINES = 3, STACK_BYTES = 64 * 1024 };

static ucontext_t main_context;
static ucontext_t contexts[COROUTINES];
static int finished[COROUTINES];
static int running;

SAMPLE int s_work(int n)
{
    TRUTH_ENTER();
    const int result = n <= 0 ? 1 : s_work(n - 1) + n;
    TRUTH_LEAVE();
    return result;
}

SAMPLE void s_yield(int self)
{
    TRUTH_ENTER();
    truth_lane(0);
    swapcontext(&contexts[self], &main_context);
    truth_lane(1 + self);
    TRUTH_LEAVE();
}

SAMPLE void s_body(int self)
{
    TRUTH_ENTER();
    for (int i = 0; i < 4; i++) {
        s_work(self + i);
        s_yield(self);
        s_work(1);
    }
    TRUTH_LEAVE();
}

static void start(void)
{
    const int self = running;
    s_body(self);
    finished[self] = 1;
    truth_lane(0);
}

SAMPLE void s_resume(int other)
{
    TRUTH_ENTER();
    running = other;
    truth_lane(1 + other);
    swapcontext(&main_context, &contexts[other]);
    truth_lane(0);
    TRUTH_LEAVE();
}

SAMPLE void s_schedule(void)
{
    TRUTH_ENTER();
    for (int left = COROUTINES; left > 0;) {
        for (int i = 0; i < COROUTINES; i++) {
            if (!finished[i]) {
                s_resume(i);
                left -= finished[i];
                s_work(2);
            }
        }
    }
    TRUTH_LEAVE();
}

int main(void)
{
    for (int i = 0; i < COROUTINES; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = malloc(STACK_BYTES);
        contexts[i].uc_stack.ss_size = STACK_BYTES;
        contexts[i].uc_link = &main_context;
        makecontext(&contexts[i], start, 0);
    }
    s_schedule();
    return 0;
}
