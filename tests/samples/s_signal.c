/* Signal handlers that make calls. They run on the interrupted stack and on an alternate stack,
 * which also lies inside the interrupted stack. Some leave by siglongjmp. */
#define _GNU_SOURCE
#include "truth.h"

#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

static sigjmp_buf target;

SAMPLE int s_in_handler(int n)
{
    TRUTH_ENTER();
    const int result = n <= 0 ? 0 : s_in_handler(n - 1);
    TRUTH_LEAVE();
    return result;
}

static void on_same_stack(int number)
{
    s_in_handler(number % 4);
}

static void on_alternate_stack(int number)
{
    truth_lane(1);
    s_in_handler(number % 3 + 1);
    truth_lane(0);
}

static void on_jump(int number)
{
    s_in_handler(number % 2);
    siglongjmp(target, 1);
}

SAMPLE void s_escape(void)
{
    TRUTH_ENTER();
    siglongjmp(target, 1);
}

static void on_inner_stack(int number)
{
    truth_lane(2);
    s_in_handler(number % 3 + 1);
    truth_lane(0);
}

static void on_jump_from_inner_stack(int number)
{
    truth_lane(2);
    s_in_handler(number % 3);
    s_escape();
}

SAMPLE void s_raise(int number)
{
    TRUTH_ENTER();
    raise(number);
    TRUTH_LEAVE();
}

SAMPLE void s_jump_out(void)
{
    TRUTH_ENTER();
    const int depth = truth_depth();
    if (sigsetjmp(target, 1) == 0) {
        s_raise(SIGHUP);
    } else {
        truth_unwind(depth);
    }
    s_in_handler(1);
    TRUTH_LEAVE();
}

/* Runs two handlers on an alternate stack that is a local array, as Ada's tasks have it. */
SAMPLE void s_inner_stack(void)
{
    TRUTH_ENTER();
    enum { BYTES = 128 * 1024 };
    volatile char space[BYTES];
    const stack_t stack = {.ss_sp = (void *)space, .ss_size = BYTES};
    stack_t before;
    const int depth = truth_depth();
    space[0] = 0;
    sigaltstack(&stack, &before);
    s_raise(SIGTERM);
    if (sigsetjmp(target, 1) == 0) {
        s_raise(SIGINT);
    } else {
        truth_unwind(0);
        truth_lane(0);
        truth_unwind(depth);
    }
    s_in_handler(space[0]);
    sigaltstack(&before, NULL);
    TRUTH_LEAVE();
}

int main(void)
{
    const stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_handler = on_same_stack};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = on_alternate_stack;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR2, &action, NULL);
    action.sa_handler = on_inner_stack;
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = on_jump_from_inner_stack;
    sigaction(SIGINT, &action, NULL);
    action.sa_handler = on_jump;
    action.sa_flags = 0;
    sigaction(SIGHUP, &action, NULL);
    for (int i = 0; i < 5; i++) {
        s_raise(SIGUSR1);
        s_raise(SIGUSR2);
        s_jump_out();
        s_inner_stack();
    }
    return 0;
}
