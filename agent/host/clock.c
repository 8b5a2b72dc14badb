#include "agent/host/clock.h"

#include "agent/abi/machine.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { READING_ATTEMPTS = 16, PROBE_LOOPS = 20000, RATE_SHIFT = 24 };

/* The loop is measured in short parts, because an interrupt spoils the part in which it falls. */
enum { PART_LOOPS = 1000, PARTS = 120 };
enum { STEP_ROUNDS = 5, STEP_SAMPLES = 200, STEP_PAUSE_LOOPS = 200 };

/* QEMU's user mode derives cntvct_el0 from the real-time clock: 1 tick is 16 ns. */
enum { EMULATED_NS_PER_TICK = 16 };

static bool follows_emulator;

uint64_t sj_clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void sj_clock_follow_emulator(void)
{
    follows_emulator = true;
}

bool sj_clock_is_of(const sj_arena_header *arena)
{
    if (arena->clock_hz == 0) {
        return !follows_emulator;
    }
    if (SJ_MACHINE_CLOCK_TELLS_HZ) {
        return !follows_emulator;
    }
    return follows_emulator && arena->clock_hz == UINT64_C(1000000000) / EMULATED_NS_PER_TICK;
}

uint64_t sj_clock_ticks(void)
{
    if (follows_emulator) {
        return sj_clock_ns(CLOCK_REALTIME) / EMULATED_NS_PER_TICK;
    }
    return sj_machine_ticks();
}

const char *sj_clock_name(void)
{
    return follows_emulator ? "cntvct" : SJ_MACHINE_CLOCK_NAME;
}

void sj_clock_read_pair(double ns_per_tick, sj_clock_pair *pair)
{
    uint64_t best_width = UINT64_MAX;
    for (int attempt = 0; attempt < READING_ATTEMPTS; attempt++) {
        sj_clock_pair reading;
        const uint64_t before = sj_clock_ticks();
        reading.monotonic_raw_ns = sj_clock_ns(CLOCK_MONOTONIC_RAW);
        reading.monotonic_ns = sj_clock_ns(CLOCK_MONOTONIC);
        reading.boottime_ns = sj_clock_ns(CLOCK_BOOTTIME);
        reading.realtime_ns = sj_clock_ns(CLOCK_REALTIME);
        const uint64_t width = sj_clock_ticks() - before;
        if (width < best_width) {
            best_width = width;
            *pair = reading;
            pair->ticks = before + width / 2;
            pair->uncertainty_ns = (uint64_t)((double)width * ns_per_tick / 2);
        }
    }
}

void sj_clock_rate_finish(const sj_clock_pair *start, sj_clock_rate *rate)
{
    const uint64_t passed_ns = sj_clock_ns(CLOCK_MONOTONIC_RAW) - start->monotonic_raw_ns;
    if (passed_ns < SJ_CLOCK_RATE_NS) {
        const struct timespec remaining = {.tv_nsec = (long)(SJ_CLOCK_RATE_NS - passed_ns)};
        nanosleep(&remaining, NULL);
    }
    const uint64_t before = sj_clock_ticks();
    sj_clock_pair end;
    sj_clock_read_pair(0, &end);
    const double spent_ticks = (double)(sj_clock_ticks() - before) / READING_ATTEMPTS;
    const double ticks = (double)(end.ticks - start->ticks);
    const double ns = (double)(end.monotonic_raw_ns - start->monotonic_raw_ns);
    rate->denominator = UINT64_C(1) << RATE_SHIFT;
    rate->numerator = (uint64_t)(ns / ticks * (double)rate->denominator + 0.5);
    rate->uncertainty_ppm = spent_ticks / ticks * 1e6;
}

static uint64_t greatest_divisor(uint64_t left, uint64_t right)
{
    while (right != 0) {
        const uint64_t remainder = left % right;
        left = right;
        right = remainder;
    }
    return left;
}

/* Pauses, then reads the raw clock. If two readings fall into the same step, some processors add 1
 * tick to the second. The pause puts the readings into different steps. */
static uint64_t read_raw_apart(void)
{
    for (volatile int i = 0; i < STEP_PAUSE_LOOPS; i++) {
    }
    return sj_clock_ticks();
}

uint32_t sj_clock_step(void)
{
    return sj_clock_step_of(read_raw_apart);
}

uint32_t sj_clock_step_of(uint64_t (*read_apart)(void))
{
    uint64_t greatest = 1;
    /* One round is not enough: a thread that moves to another processor may see a step of 1. */
    for (int round = 0; round < STEP_ROUNDS; round++) {
        uint64_t step = 0;
        uint64_t last = read_apart();
        for (int i = 0; i < STEP_SAMPLES; i++) {
            const uint64_t now = read_apart();
            step = greatest_divisor(now - last, step);
            last = now;
        }
        greatest = step > greatest ? step : greatest;
    }
    return greatest <= UINT32_MAX ? (uint32_t)greatest : 1;
}

uint32_t sj_clock_kept_step(uint32_t clock_step, uint64_t resolution_ns, double ns_per_tick)
{
    if (resolution_ns == 0 || !(ns_per_tick > 0)) {
        return 0;
    }
    const double steps = (double)resolution_ns / (ns_per_tick * clock_step);
    const double most = (double)(UINT32_MAX / clock_step);
    return steps < 1 ? clock_step : clock_step * (uint32_t)(steps < most ? steps : most);
}

/* Memory that a simulated probe writes. It is as large as the buffer of a thread by default. */
typedef struct probe_memory {
    volatile uint64_t cursor;
    uint64_t records[PROBE_LOOPS * 4];
} probe_memory;

/* Simulates one stub: saves registers, reserves and writes one record. `volatile` keeps the
 * compiler from removing a step. */
static __attribute__((noinline)) void run_probe(probe_memory *memory, uint32_t tag)
{
    volatile uint64_t saved[4] = {tag, tag + 1, tag + 2, tag + 3};
    const uint64_t now = sj_clock_ticks();
    const uint64_t at = memory->cursor;
    memory->cursor = at + 2;
    volatile uint64_t *record = &memory->records[at];
    record[0] = now << 16 | saved[1];
    record[1] = saved[2] << 32 | tag;
}

double sj_clock_call_ticks(void)
{
    probe_memory *memory = malloc(sizeof(*memory));
    uint64_t best = UINT64_MAX;
    for (int part = 0; memory != NULL && part < PARTS; part++) {
        memory->cursor = part % (PROBE_LOOPS / PART_LOOPS) == 0 ? 0 : memory->cursor;
        const uint64_t start = sj_clock_ticks();
        for (uint32_t i = 0; i < PART_LOOPS; i++) {
            run_probe(memory, 2 * i);
            run_probe(memory, 2 * i + 1);
        }
        const uint64_t spent = sj_clock_ticks() - start;
        best = spent < best ? spent : best;
    }
    free(memory);
    return memory != NULL ? (double)best / PART_LOOPS : sj_clock_probe_ticks();
}

double sj_clock_probe_ticks(void)
{
    uint64_t words[4];
    volatile uint64_t *record = words;
    uint64_t best = UINT64_MAX;
    for (int round = 0; round < 5; round++) {
        const uint64_t start = sj_clock_ticks();
        for (int i = 0; i < PROBE_LOOPS; i++) {
            record[0] = sj_clock_ticks();
            record[1] = (uint64_t)i;
            record[2] = sj_clock_ticks();
            record[3] = (uint64_t)i;
        }
        const uint64_t spent = sj_clock_ticks() - start;
        best = spent < best ? spent : best;
    }
    return (double)best / PROBE_LOOPS;
}
