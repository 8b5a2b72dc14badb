/* The program that diff_power.py records: functions that share the work of a run unevenly. The
 * argument slows `sort_records` by that many percent of its own work; 0 changes nothing. The amount
 * of work is fixed. The result is printed, so that the compiler cannot remove the work. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 400, RECORDS = 512, PASS_STEPS = 2000 };

static uint32_t records[RECORDS];

__attribute__((noinline)) static uint64_t spin(uint64_t seed, unsigned steps)
{
    for (unsigned i = 0; i < steps; ++i) {
        seed = seed * UINT64_C(6364136223846793005) + (seed >> 29);
        __asm__ volatile("" : "+r"(seed));
    }
    return seed;
}

__attribute__((noinline)) static uint64_t read_records(uint64_t seed)
{
    for (unsigned i = 0; i < RECORDS; ++i) {
        seed = seed * UINT64_C(2862933555777941757) + 3037000493;
        records[i] = (uint32_t)(seed >> 32);
    }
    return seed;
}

__attribute__((noinline)) static uint64_t sort_records(uint64_t seed, unsigned percent)
{
    const unsigned steps = 20 * PASS_STEPS + 20 * PASS_STEPS / 100 * percent;
    for (unsigned i = 0; i < steps; ++i) {
        seed = seed * UINT64_C(6364136223846793005) + records[seed % RECORDS];
        __asm__ volatile("" : "+r"(seed));
    }
    return seed;
}

__attribute__((noinline)) static uint64_t check_records(uint64_t seed)
{
    for (unsigned i = 0; i < 10; ++i) {
        seed ^= spin(seed, PASS_STEPS);
    }
    return seed;
}

__attribute__((noinline)) static uint64_t write_records(uint64_t seed)
{
    return spin(seed, 4 * PASS_STEPS) ^ records[0];
}

int main(int argc, char **argv)
{
    const unsigned percent = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    uint64_t seed = 1;
    for (unsigned round = 0; round < ROUNDS; ++round) {
        seed = read_records(seed);
        seed = sort_records(seed, percent);
        seed = check_records(seed);
        seed = write_records(seed);
    }
    printf("%llu\n", (unsigned long long)seed);
    return 0;
}
