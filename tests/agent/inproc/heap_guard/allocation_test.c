/* Each allocation has the same chance to be guarded, whatever came before it. */
#include "agent/inproc/heap_guard/internal.h"

#include "tests/support/check.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

enum { ONE_IN = 20, DRAWS = 1 << 22, DISTANCES = 100, THREADS = 20000, ALLOCATIONS = 40 };

/* Evenly spaced numbers replace random ones, so the shares are exact. */
static void distances_are_geometric(void **state)
{
    (void)state;
    static uint32_t found[DISTANCES];
    for (uint32_t i = 0; i < DRAWS; i++) {
        const int64_t distance =
            sj_sampling_distance((uint32_t)(((uint64_t)i << 32) / DRAWS), ONE_IN);
        assert_true(distance >= 1);
        found[distance < DISTANCES ? distance : 0]++;
    }
    for (int distance = 1; distance < DISTANCES; distance++) {
        const double wanted =
            DRAWS * exp(-(distance - 1) / (ONE_IN - 0.5)) * (1 - exp(-1 / (ONE_IN - 0.5)));
        if (fabs(found[distance] / wanted - 1) >= 0.005) {
            fail_msg("distance %d: %u, not %.0f", distance, found[distance], wanted);
        }
    }
}

static void rare_samples_have_their_distance(void **state)
{
    (void)state;
    static const uint64_t rates[] = {2, 5000, 1000000000};
    for (uint32_t i = 0; i < 3; i++) {
        for (uint64_t part = 1; part < 64; part++) {
            const uint32_t random = (uint32_t)(part << 26);
            const double wanted = -log(random / 0x1p32) * ((double)rates[i] - 0.5);
            const double got = (double)sj_sampling_distance(random, rates[i]);
            assert_true(got >= wanted * 0.9999 && got <= wanted * 1.0001 + 1);
        }
    }
}

static sj_zombie_region *region;
static uint32_t hits[ALLOCATIONS];
static char ordinary;

static uint32_t failures; /* How many of the next allocations fail. */

static void *allocate_ordinary(size_t bytes)
{
    (void)bytes;
    if (failures != 0) {
        failures--;
        return NULL;
    }
    return &ordinary;
}

static void free_ordinary(void *block)
{
    assert_ptr_equal(block, &ordinary);
}

/* Counts down and calls the handler, as the patched entry of malloc does. */
static void *allocate(void)
{
    const uint64_t giver = (uint64_t)(uintptr_t)sj_allocation_handler(SJ_ENTRY_MALLOC);
    return --sj_sampling_countdown > 0 ? &ordinary : ((void *(*)(size_t))giver)(48);
}

static void *run_thread(void *unused)
{
    for (uint32_t i = 0; i < ALLOCATIONS; i++) {
        void *block = allocate();
        if (sj_pool_has((uint64_t)(uintptr_t)block)) {
            hits[i]++;
            sj_pool_free(block, 0, SJ_FAMILY_ANY);
        }
    }
    return unused;
}

static void prepare(void)
{
    region = calloc(1, sizeof(*region));
    sj_residue_now = calloc(1, sizeof(*sj_residue_now));
    assert_true(region != NULL && sj_residue_now != NULL);
    region->settings.one_in = ONE_IN;
    region->settings.slots = 64;
    region->settings.memory_kib = 4096;
    region->settings.reports_per_minute = 100;
    sj_heap_originals[SJ_ENTRY_MALLOC] = (uint64_t)(uintptr_t)allocate_ordinary;
    sj_heap_originals[SJ_ENTRY_FREE] = (uint64_t)(uintptr_t)free_ordinary;
    sj_heap_originals[SJ_ENTRY_SIGACTION] = (uint64_t)(uintptr_t)sigaction;
    sj_residue_now->families[SJ_ENTRY_MALLOC] = SJ_FAMILY_ANY;
    atomic_store(&sj_residue_now->shared.is_whole, 1);
    assert_true(sj_pool_init(&region->settings));
    sj_faults_adopt();
    atomic_store(&sj_zombie_region_now, region);
}

/* Uses many short threads: the first allocation of a thread has its share, and so does the one
 * after a guarded one. */
static void no_allocation_is_preferred(void **state)
{
    (void)state;
    prepare();
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, run_thread, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    const double wanted = (double)THREADS / ONE_IN;
    /* Chance does not exceed this band. */
    const double band = 6 * sqrt(wanted * (1 - 1.0 / ONE_IN));
    for (uint32_t i = 0; i < ALLOCATIONS; i++) {
        if (fabs(hits[i] - wanted) > band) {
            fail_msg("turn %u: %u, not %.0f +- %.0f", i, hits[i], wanted, band);
        }
    }
    assert_int_equal(atomic_load(&region->counters.uses), 0);
}

/* Returns how many allocations it takes until `limit` blocks are live. */
static uint32_t fill(void **blocks, uint32_t limit)
{
    uint32_t allocations = 0;
    for (uint32_t live = 0; live < limit; allocations++) {
        void *block = allocate();
        if (sj_pool_has((uint64_t)(uintptr_t)block)) {
            blocks[live++] = block;
        }
    }
    return allocations;
}

/* The last four of 64 blocks are given rarely: on average 1, 4/3, 2 and 4 allocations get one. */
static void the_last_blocks_are_sampled(void **state)
{
    (void)state;
    enum { BLOCKS = 64, SURE = 61, ROUNDS = 200 };
    void *blocks[BLOCKS];
    uint32_t allocations = 0;
    const uint64_t guarded = atomic_load(&region->counters.guarded);
    const uint64_t refused = atomic_load(&region->counters.refused_full);
    region->settings.one_in = 1;
    sj_sampling_countdown = 1;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        assert_int_equal(fill(blocks, SURE), SURE);
        for (uint32_t i = 0; i < SURE; i++) {
            sj_pool_free(blocks[i], 0, SJ_FAMILY_ANY);
        }
        allocations += fill(blocks, BLOCKS);
        for (uint32_t i = 0; i < BLOCKS; i++) {
            sj_pool_free(blocks[i], 0, SJ_FAMILY_ANY);
        }
    }
    const double wanted = ROUNDS * (SURE + 4 / 3.0 + 4 / 2.0 + 4 / 1.0);
    if (fabs(allocations - wanted) > 330) { /* Six standard deviations. */
        fail_msg("%u allocations, not about %.0f", allocations, wanted);
    }
    assert_int_equal(atomic_load(&region->counters.guarded) - guarded, ROUNDS * (SURE + BLOCKS));
    assert_int_equal(atomic_load(&region->counters.refused_full) - refused,
                     allocations - ROUNDS * BLOCKS);
    region->settings.one_in = ONE_IN;
}

/* Before an allocation fails, half of the memory of freed blocks is given back. */
static void a_failing_allocation_frees_memory(void **state)
{
    (void)state;
    sj_sampling_countdown = 1;
    region->settings.one_in = 1;
    void *guarded = allocate();
    assert_true(sj_pool_has((uint64_t)(uintptr_t)guarded));
    sj_pool_free(guarded, 0, SJ_FAMILY_ANY);
    const sj_pool_slot *slot = sj_pool_find((uint64_t)(uintptr_t)guarded);
    const bool was_saved = sj_pages_is_saved(slot);
    region->settings.memory_kib = 0; /* No block is guarded from now on. */
    failures = 1;
    assert_ptr_equal(allocate(), &ordinary);
    const uint64_t floor = atomic_load(&sj_heap_pool.saved_floor);
    assert_true(!was_saved || floor != 0);
    failures = 2;
    assert_null(allocate());
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(distances_are_geometric),
                                       cmocka_unit_test(rare_samples_have_their_distance),
                                       cmocka_unit_test(no_allocation_is_preferred),
                                       cmocka_unit_test(the_last_blocks_are_sampled),
                                       cmocka_unit_test(a_failing_allocation_frees_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
