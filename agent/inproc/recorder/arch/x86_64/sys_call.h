/* Machine-dependent primitives of the recorder for x86-64 Linux. Each architecture has one file of
 * this name. The functions do not use errno or libc, and do not change vector registers. */
#ifndef SJ_AGENT_INPROC_RECORDER_ARCH_X86_64_SYS_CALL_H
#define SJ_AGENT_INPROC_RECORDER_ARCH_X86_64_SYS_CALL_H

#include <stdbool.h>
#include <stdint.h>

/* Makes a system call. Returns a negative errno on failure. Async-signal-safe. */
static inline long sj_sys_call6(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* Reads the raw clock. */
static inline uint64_t sj_arch_ticks(void)
{
    uint32_t low;
    uint32_t high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

/* Copies the top of the x87 stack: a long double that a function returns. Returns false if the
 * stack is empty or `position` is not 0, because no argument is passed in an x87 register. Does not
 * change the x87 state. */
static inline bool sj_arch_extended(uint32_t position, uint64_t words[2])
{
    enum { TAGS = 4, TOP = 0x38, FIRST = 32, SAVED_BYTES = 512 };
    _Alignas(16) uint8_t saved[SAVED_BYTES];
    __asm__ volatile("fxsave %0" : "=m"(saved));
    const uint32_t top = (uint32_t)(saved[3] & TOP) >> 3;
    if (position != 0 || (saved[TAGS] >> top & 1) == 0) {
        return false;
    }
    __builtin_memcpy(words, saved + FIRST, 2 * sizeof(*words));
    return true;
}

/* Returns the clock's rate as the machine states it, in Hz; 0: the machine does not state it. */
static inline uint64_t sj_arch_ticks_hz(void)
{
    return 0;
}

/* Adds `bytes` to the calling thread's cursor and returns its old value, in one instruction. A
 * signal handler runs before or after it, never in between. */
static inline uint64_t sj_arch_reserve(uint64_t *cursor, uint64_t bytes)
{
    __asm__ volatile("xaddq %0, %1" : "+r"(bytes), "+m"(*cursor) : : "memory", "cc");
    return bytes;
}

/* Returns the address of the thread's control block. On stacks that a C library makes, its address
 * is greater than those of all frames. */
static inline uint64_t sj_arch_thread_pointer(void)
{
    uint64_t pointer;
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
    return pointer;
}

/* True if a handler's return address at `at` belongs to a frame that the kernel made. In such a
 * frame, a ucontext follows the return address. Its uc_link is NULL, and its code segment is that
 * of user code. `words` is a copy of the stack around `at`. */
enum { SJ_ARCH_SIGNAL_WORDS_BEFORE = 0, SJ_ARCH_SIGNAL_WORDS_BEHIND = 41 };

static inline bool sj_arch_is_signal_frame(const uint64_t *words, uint64_t at)
{
    enum { FLAGS = 1, LINK = 2, SEGMENTS = 24, FLAG_BITS = 0xf, USER_CODE = 0x33 };
    (void)at;
    return words[FLAGS] <= FLAG_BITS && words[LINK] == 0 && (words[SEGMENTS] & 0xffff) == USER_CODE;
}

/* Returns the signals that were blocked when the handler of a frame began. */
static inline uint64_t sj_arch_frame_mask(const uint64_t *words)
{
    enum { MASK = 38 };
    return words[MASK];
}

/* The signal of a handler's frame, and its si_code. */
typedef struct sj_arch_signal {
    uint32_t number; /* 0: unknown */
    int32_t code;
} sj_arch_signal;

/* Reads a frame's siginfo. The kernel wrote it only if the handler has SA_SIGINFO. */
static inline sj_arch_signal sj_arch_frame_signal(const uint64_t *words)
{
    enum { NUMBER = 39, CODE = 40 };
    return (sj_arch_signal){(uint32_t)words[NUMBER], (int32_t)(uint32_t)words[CODE]};
}

#endif
