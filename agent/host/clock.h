/* The recorder's clock: the raw ticks that probes write, their rate, and readings that relate them
 * to the kernel's clocks. Thread-safe. Only sj_clock_rate_finish blocks. */
#ifndef SJ_AGENT_HOST_CLOCK_H
#define SJ_AGENT_HOST_CLOCK_H

#include "agent/abi/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Returns the time of a kernel clock in nanoseconds. */
uint64_t sj_clock_ns(clockid_t clock);

/* Makes sj_clock_ticks return the ticks that an AArch64 program reads under QEMU's user mode. Call
 * it before any thread starts. */
void sj_clock_follow_emulator(void);

/* True if the records of an arena use the clock that sj_clock_ticks reads. */
bool sj_clock_is_of(const sj_arena_header *arena);

/* Reads the raw clock: rdtsc on x86-64, cntvct_el0 on AArch64. */
uint64_t sj_clock_ticks(void);

/* Returns the clock's name for Session.clock_name. Static storage. */
const char *sj_clock_name(void);

/* The raw clock and the kernel's clocks, read at nearly the same time. */
typedef struct sj_clock_pair {
    uint64_t ticks;
    uint64_t monotonic_ns;
    uint64_t monotonic_raw_ns; /* not adjusted by NTP: the rate is measured against it */
    uint64_t boottime_ns;
    uint64_t realtime_ns;
    uint64_t uncertainty_ns; /* half the duration of the reading */
} sj_clock_pair;

/* Reads all clocks several times and writes the reading that took the shortest time. Computes
 * `uncertainty_ns` by `ns_per_tick`, which is 0 if the rate is not known yet. */
void sj_clock_read_pair(double ns_per_tick, sj_clock_pair *pair);

/* The rate of the raw clock: duration in ns = ticks * numerator / denominator. */
typedef struct sj_clock_rate {
    uint64_t numerator;
    uint64_t denominator;
    double uncertainty_ppm; /* mean duration of a reading divided by the measured time, in ppm */
} sj_clock_rate;

/* Measures the rate between `start` and now. Blocks until SJ_CLOCK_RATE_NS have passed since
 * `start`. */
enum { SJ_CLOCK_RATE_NS = 20 * 1000 * 1000 };
void sj_clock_rate_finish(const sj_clock_pair *start, sj_clock_rate *rate);

/* Returns the smallest step by which the raw clock advances, in ticks (1 on most machines). */
uint32_t sj_clock_step(void);

/* Returns the smallest step of the clock that `read_apart` reads. `read_apart` pauses before each
 * reading, so that no two readings fall into the same step. */
uint32_t sj_clock_step_of(uint64_t (*read_apart)(void));

/* Returns the largest multiple of `clock_step` ticks that lasts at most `resolution_ns`. Returns
 * `clock_step` if one step lasts longer. Returns 0 (keep every tick) if `resolution_ns` or
 * `ns_per_tick` is 0. */
uint32_t sj_clock_kept_step(uint32_t clock_step, uint64_t resolution_ns, double ns_per_tick);

/* Measures the cost of two clock readings and two 16-byte stores together, in ticks. This is the
 * minimum cost of a recorded call on this machine. */
double sj_clock_probe_ticks(void);

/* Measures the cost of two simulated stubs together, in ticks. Each reads the clock, saves
 * registers, reserves and writes a record. How much of this work overlaps with the clock reading
 * differs between processors. Returns sj_clock_probe_ticks if out of memory. */
double sj_clock_call_ticks(void);

#endif
