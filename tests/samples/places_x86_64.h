/* The x86-64 part of signal_places.c. */
#ifndef SJ_TESTS_SAMPLES_PLACES_X86_64_H
#define SJ_TESTS_SAMPLES_PLACES_X86_64_H

#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

/* Each instruction is a step. */
enum { TRAP_FLAG = 0x100, STEPS_FOR_ONE_OUTSIDE = 20 };
enum { RESTORER_FLAG = 0x04000000 }; /* C libraries add this flag to an action, and report it */
enum { REFUSED = SIGFPE };           /* the signal that refuse() raises */

/* A restorer that debuggers recognise by its name and unwinders by its unwind information. That
 * information says where the kernel's frame keeps %rbp, %rbx, %rip and, as the frame's address,
 * %rsp. */
__asm__(".text\n.cfi_startproc\n.cfi_signal_frame\n"
        ".cfi_escape 0x0f, 4, 0x77, 0xa0, 0x01, 0x06\n"
        ".cfi_escape 0x10, 6, 3, 0x77, 0xf8, 0x00\n"
        ".cfi_escape 0x10, 3, 3, 0x77, 0x80, 0x01\n"
        ".cfi_escape 0x10, 16, 3, 0x77, 0xa8, 0x01\n"
        "nop\n__restore_rt: movq $15, %rax\nsyscall\n.cfi_endproc\n");
extern const char own_restorer[] __asm__("__restore_rt");
#define OWN_RESTORER own_restorer

static uintptr_t *pc_of(void *context)
{
    return (uintptr_t *)&((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
}

/* Raises a signal at one of its own instructions. */
__attribute__((noipa)) int refuse(int zero)
{
    return 1000 / zero;
}

enum {
    FIRST_PUSH = 16
}; /* distance from call_on_stack's `sp` to the word below the return address */

static __attribute__((noinline)) long call_on_stack(long (*function)(long), uintptr_t sp,
                                                    long argument)
{
    long result = 1;
    __asm__ volatile("mov %%rsp, %%rbx; mov %2, %%rsp; call *%1; mov %%rbx, %%rsp"
                     : "=a"(result)
                     : "r"(function), "r"(sp), "D"(argument)
                     : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
    return result;
}

/* Makes calls in single steps (SIGTRAP). Each instruction is interrupted, and so is every place in
 * a stub. */
static __attribute__((noinline, optimize("no-omit-frame-pointer"))) long
call_stepped(long (*function)(long), long calls, const volatile long *steps)
{
    long sum = 0;
    (void)steps;
    for (long i = 0; i < calls; i++) {
        __asm__ volatile("pushfq; orl %0, (%%rsp); popfq" : : "i"(TRAP_FLAG) : "memory", "cc");
        sum += function(i);
        __asm__ volatile("pushfq; andl %0, (%%rsp); popfq" : : "i"(~TRAP_FLAG) : "memory", "cc");
    }
    return sum;
}

/* Unused: the trap flag makes the steps. */
typedef struct stepper {
    char unused;
} stepper;

static void begin_steps(stepper *steps, const volatile long *count, long more)
{
    (void)steps;
    (void)more;
    (void)count;
}

static int is_stepped_enough(const stepper *steps)
{
    (void)steps;
    return 1;
}

static void end_all_steps(stepper *steps)
{
    (void)steps;
}

/* Steps are made in the first of many calls, and in the calls from STEPPED_FROM on. */
enum { STEPPED_FROM = 120, MARKED_STEPS = 0, MARK = 0x5a5a5a };

/* Steps through a call with marks in the registers that neither the function nor its caller
 * changes. */
static __attribute__((noipa)) long call_marked(long (*function)(long), long argument)
{
    long result;
    __asm__ volatile("lea -128(%%rsp), %%rsp; mov %3, %%ebx; mov %%rbx, %%rsi; mov %%rbx, %%r8;"
                     "mov %%rbx, %%r9; mov %%rbx, %%r10; mov %%rbx, %%r12; mov %%rbx, %%r13;"
                     "mov %%rbx, %%r14; mov %%rbx, %%r15; pushfq; orl %4, (%%rsp); popfq;"
                     "call *%%rax; pushfq; andl %5, (%%rsp); popfq; lea 128(%%rsp), %%rsp"
                     : "=a"(result)
                     : "a"(function), "D"(argument), "i"(MARK), "i"(TRAP_FLAG), "i"(~TRAP_FLAG)
                     : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
                       "r15", "memory", "cc");
    return result;
}

static void end_steps(void *context)
{
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

static int has_marks(const void *context)
{
    static const unsigned char marked[] = {REG_RBX, REG_RSI, REG_R8,  REG_R9, REG_R10,
                                           REG_R12, REG_R13, REG_R14, REG_R15};
    int count = 0;
    for (unsigned i = 0; i < sizeof(marked); i++) {
        count += ((const ucontext_t *)context)->uc_mcontext.gregs[marked[i]] == MARK;
    }
    return count == (int)sizeof(marked);
}

#endif
