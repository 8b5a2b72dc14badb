/* The recorder's clock: the same raw ticks that probes write, their rate, and pairs that tie them
 * to the kernel's clocks. Any thread; nothing blocks but sj_clock_rate_finish. */
#ifndef SJ_AGENT_HOST_CLOCK_H
#define SJ_AGENT_HOST_CLOCK_H

#include "agent/abi/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* sj_clock_ns reads a clock of the kernel. */
uint64_t sj_clock_ns(clockid_t clock);

/* sj_clock_follow_emulator makes sj_clock_ticks the clock of programs for AArch64 under QEMU's
 * user mode. Before any thread is started. */
void sj_clock_follow_emulator(void);

/* sj_clock_is_of returns whether the records of an arena bear the clock that sj_clock_ticks reads.
 */
bool sj_clock_is_of(const sj_arena_header *arena);

/* sj_clock_ticks reads the raw clock: rdtsc on x86-64, cntvct_el0 on aarch64. */
uint64_t sj_clock_ticks(void);

/* sj_clock_name is what Session.clock_name says of it. Static storage. */
const char *sj_clock_name(void);

/* One reading of all clocks at (nearly) one moment. */
typedef struct sj_clock_pair {
    uint64_t ticks;
    uint64_t monotonic_ns;
    uint64_t monotonic_raw_ns; /* not slewed by NTP: what the rate is measured against */
    uint64_t boottime_ns;
    uint64_t realtime_ns;
    uint64_t uncertainty_ns; /* half the time that the reading took */
} sj_clock_pair;

/* sj_clock_take_pair takes the tightest of several readings. `ns_per_tick` (0: not known yet) turns
 * the width of the reading into `uncertainty_ns`. */
void sj_clock_take_pair(double ns_per_tick, sj_clock_pair *pair);

/* The rate of the raw clock: duration in ns = ticks * numerator / denominator. */
typedef struct sj_clock_rate {
    uint64_t numerator;
    uint64_t denominator;
    double uncertainty_ppm; /* how far off the rate can be, from the widths of both readings */
} sj_clock_rate;

/* sj_clock_rate_finish measures the rate between `start` and now, waiting until at least
 * SJ_CLOCK_RATE_NS have passed. */
enum { SJ_CLOCK_RATE_NS = 20 * 1000 * 1000 };
void sj_clock_rate_finish(const sj_clock_pair *start, sj_clock_rate *rate);

/* sj_clock_step finds the smallest step of the raw clock, in ticks (1 on most machines);
 * sj_clock_step_of that of another clock, whose readings are some way apart. */
uint32_t sj_clock_step(void);
uint32_t sj_clock_step_of(uint64_t (*read_apart)(void));

/* sj_clock_kept_step is the largest multiple of `clock_step` ticks that lasts no longer than
 * `resolution_ns`, at least `clock_step`; 0, keep all, when `resolution_ns` is 0 or the rate is not
 * known. */
uint32_t sj_clock_kept_step(uint32_t clock_step, uint64_t resolution_ns, double ns_per_tick);

/* sj_clock_probe_ticks measures what two readings of the clock and two 16-byte stores cost, in
 * ticks per pair: the floor of the cost of one recorded call on this machine. */
double sj_clock_probe_ticks(void);

/* sj_clock_call_ticks measures what two probes cost, in ticks per pair: the clock, and what a stub
 * does beside it (registers saved, a record reserved and written). What part of that hides behind
 * the clock differs between processors. */
double sj_clock_call_ticks(void);

#endif
