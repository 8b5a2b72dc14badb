/* The recorder's clock: the raw ticks that probes write, their rate, and pairs that relate them to
 * the kernel's clocks. Thread-safe; only sj_clock_rate_finish blocks. */
#ifndef SJ_AGENT_HOST_CLOCK_H
#define SJ_AGENT_HOST_CLOCK_H

#include "agent/abi/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Returns the time of a clock of the kernel. */
uint64_t sj_clock_ns(clockid_t clock);

/* Makes sj_clock_ticks the clock of AArch64 programs under QEMU's user mode. Call it before any
 * thread starts. */
void sj_clock_follow_emulator(void);

/* True if the records of an arena use the clock that sj_clock_ticks reads. */
bool sj_clock_is_of(const sj_arena_header *arena);

/* Reads the raw clock: rdtsc on x86-64, cntvct_el0 on AArch64. */
uint64_t sj_clock_ticks(void);

/* Returns the clock's name for Session.clock_name. Static storage. */
const char *sj_clock_name(void);

/* A reading of all clocks at (nearly) the same time. */
typedef struct sj_clock_pair {
    uint64_t ticks;
    uint64_t monotonic_ns;
    uint64_t monotonic_raw_ns; /* not adjusted by NTP: the rate is measured against it */
    uint64_t boottime_ns;
    uint64_t realtime_ns;
    uint64_t uncertainty_ns; /* half the duration of the reading */
} sj_clock_pair;

/* Makes several readings and keeps the shortest. `ns_per_tick` (0: not known yet) converts its
 * duration into `uncertainty_ns`. */
void sj_clock_read_pair(double ns_per_tick, sj_clock_pair *pair);

/* The rate of the raw clock: duration in ns = ticks * numerator / denominator. */
typedef struct sj_clock_rate {
    uint64_t numerator;
    uint64_t denominator;
    double uncertainty_ppm; /* maximum error of the rate, from the durations of both readings */
} sj_clock_rate;

/* Measures the rate between `start` and now. Blocks until at least SJ_CLOCK_RATE_NS have passed. */
enum { SJ_CLOCK_RATE_NS = 20 * 1000 * 1000 };
void sj_clock_rate_finish(const sj_clock_pair *start, sj_clock_rate *rate);

/* sj_clock_step returns the smallest step of the raw clock, in ticks (1 on most machines).
 * sj_clock_step_of returns that of another clock, whose readings are some time apart. */
uint32_t sj_clock_step(void);
uint32_t sj_clock_step_of(uint64_t (*read_apart)(void));

/* Returns the largest multiple of `clock_step` ticks that lasts at most `resolution_ns`, at least
 * `clock_step`. Returns 0 (keep every tick) if `resolution_ns` is 0, or if the rate is not
 * known. */
uint32_t sj_clock_kept_step(uint32_t clock_step, uint64_t resolution_ns, double ns_per_tick);

/* Measures the cost of two clock readings and two 16-byte stores, in ticks per pair. This is the
 * minimum cost of a recorded call on this machine. */
double sj_clock_probe_ticks(void);

/* Measures the cost of two probes, in ticks per pair: the clock, and the other work of a stub
 * (saving registers, reserving and writing a record). How much of that work overlaps with the clock
 * differs between processors. */
double sj_clock_call_ticks(void);

#endif
