/* Machine-dependent primitives of the recorder for AArch64 Linux. Each architecture has one file of
 * this name. The functions do not use errno or libc, and do not change vector registers. */
#ifndef SJ_AGENT_INPROC_RECORDER_ARCH_AARCH64_SYS_CALL_H
#define SJ_AGENT_INPROC_RECORDER_ARCH_AARCH64_SYS_CALL_H

#include <stdbool.h>
#include <stdint.h>

/* Makes a system call. Returns a negative errno on failure. Async-signal-safe. */
static inline long sj_sys_call6(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory", "cc");
    return x0;
}

/* Reads the raw clock. */
static inline uint64_t sj_arch_ticks(void)
{
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}

/* Copies a long double from a vector register. `position`: number of the argument's register, from
 * 1; 0: the result. Returns false if `position` is greater than 8. The recorder is built without
 * vector registers, so they still hold the program's values. */
static inline bool sj_arch_extended(uint32_t position, uint64_t words[2])
{
    enum { REGISTERS = 8 };
    uint64_t held[2 * REGISTERS];
    const uint32_t number = position == 0 ? 0 : position - 1;
    if (number >= REGISTERS) {
        return false;
    }
    __asm__ volatile("stp q0, q1, [%1]\n"
                     "stp q2, q3, [%1, #32]\n"
                     "stp q4, q5, [%1, #64]\n"
                     "stp q6, q7, [%1, #96]\n"
                     : "=m"(held)
                     : "r"(held));
    words[0] = held[2 * number];
    words[1] = held[2 * number + 1];
    return true;
}

/* Returns the clock's rate as the machine states it, in Hz; 0: the machine does not state it. */
static inline uint64_t sj_arch_ticks_hz(void)
{
    uint64_t hz;
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
    return hz;
}

/* Adds `bytes` to the calling thread's cursor and returns its old value. A signal handler that
 * interrupts it clears the exclusive monitor on its return, so the reservation starts again. */
static inline uint64_t sj_arch_reserve(uint64_t *cursor, uint64_t bytes)
{
    uint64_t old;
    uint64_t next;
    uint32_t failed;
    __asm__ volatile("1: ldxr %0, %3\n"
                     "   add %1, %0, %4\n"
                     "   stxr %w2, %1, %3\n"
                     "   cbnz %w2, 1b\n"
                     : "=&r"(old), "=&r"(next), "=&r"(failed), "+Q"(*cursor)
                     : "r"(bytes)
                     : "memory");
    return old;
}

/* First word of the header of the saved vector registers, which the kernel writes into every frame
 * of a handler. On AArch64, this word identifies such a frame; other machines use the address of a
 * restorer. */
#define SJ_ARCH_SIGNAL_WORD UINT64_C(0x0000021046508001)

/* Returns the address of the thread's control block. On stacks that a C library makes, its address
 * is greater than those of all frames. */
static inline uint64_t sj_arch_thread_pointer(void)
{
    uint64_t pointer;
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
    return pointer;
}

/* True if the word at `at` belongs to a handler's frame that the kernel made. In such a frame,
 * three values precede the word. They are the interrupted stack pointer, which is greater than
 * `at`, an instruction's address, and the state of a 64-bit program. `words` is a copy of the stack
 * around `at`. */
enum { SJ_ARCH_SIGNAL_WORDS_BEFORE = 53, SJ_ARCH_SIGNAL_WORDS_BEHIND = 0 };

static inline bool sj_arch_is_signal_frame(const uint64_t *words, uint64_t at)
{
    enum { STACK = -4, COUNTER = -3, STATE = -2, ALIGNMENT = 16, MODE_BITS = 0x1f };
    enum { LONGEST_FRAME_BYTES = 1 << 17, LOWEST_CODE = 4096, ADDRESS_BITS = 48 };
    return at % ALIGNMENT == 0 && words[STACK] > at && words[STACK] % ALIGNMENT == 0 &&
           words[STACK] - at < LONGEST_FRAME_BYTES && words[COUNTER] % 4 == 0 &&
           words[COUNTER] >= LOWEST_CODE && words[COUNTER] >> ADDRESS_BITS == 0 &&
           (words[STATE] & MODE_BITS) == 0 && words[STATE] >> 32 == 0;
}

/* Returns the signals that were blocked when the handler of a frame began. */
static inline uint64_t sj_arch_frame_mask(const uint64_t *words)
{
    enum { MASK = -53 };
    return words[MASK];
}

/* The signal of a handler's frame, and its si_code. */
typedef struct sj_arch_signal {
    uint32_t number; /* 0: unknown */
    int32_t code;
} sj_arch_signal;

/* Always returns an unknown signal: the copied words do not include the siginfo, which is too far
 * from the word that identifies a frame. */
static inline sj_arch_signal sj_arch_frame_signal(const uint64_t *words)
{
    (void)words;
    return (sj_arch_signal){0, 0};
}

#endif
