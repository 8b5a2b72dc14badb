/* Each byte of a stub area maps to an instruction of the program. Copied bytes map to the same
 * bytes there. */
#include "agent/abi/stub_map.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/hooks.h"
#include "agent/inproc/hooks/internal.h"
#include "agent/inproc/hooks/stub_areas.h"
#include "tests/agent/inproc/core/plan_builder.h"
#include "tests/agent/inproc/recorder/probe_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { OFFSET = 0x100, PAGE = 4096, FIRST_FUNCTION = 40 };

static uint8_t *text;
static sample_plan plan;
static sj_hooked_module module;
static sj_link_failure failures[4];
static sj_hooks_report report;

static bool read_bytes(void *context, uint64_t address, void *bytes, uint32_t count)
{
    (void)context;
    memcpy(bytes, (const void *)(uintptr_t)address, count);
    return true;
}

static void apply_sample(const char *directory)
{
    const sj_link_welcome welcome = make_welcome(2, 2, SJ_FULL_DROP_NEW);
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    text = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(text != MAP_FAILED);
    memset(text, 0xcc, PAGE);
    memcpy(text + OFFSET, sample_bytes, sizeof(sample_bytes));
    CHECK(mprotect(text, PAGE, PROT_READ | PROT_EXEC) == 0);
    build_plan(&plan, OFFSET);
    report = (sj_hooks_report){.failures = failures, .failures_capacity = 4};
    CHECK(sj_hooks_apply(&plan, sizeof(plan), (uint64_t)(uintptr_t)text, FIRST_FUNCTION, &module,
                         &report) == SJ_OK);
    CHECK(report.hooked == 1);
}

static void find_every_byte(const char *directory)
{
    apply_sample(directory);
    const uint64_t low = (uint64_t)(uintptr_t)module.stubs;
    const uint64_t start = (uint64_t)(uintptr_t)text + OFFSET;
    const sj_stub_area *area = (const void *)(module.stubs + SJ_STUB_AREA_OFFSET);
    uint32_t kinds[SJ_STUB_UNKNOWN + 1] = {0};
    CHECK(area->magic == SJ_STUB_AREA_MAGIC && area->code_end < module.stubs_bytes);
    for (uint64_t offset = 0; offset < area->code_end; offset++) {
        sj_stub_place place;
        CHECK(sj_stub_find(low, module.stubs_bytes, low + offset, read_bytes, NULL, &place));
        kinds[place.kind]++;
        CHECK(place.stack >= SJ_STUB_STACK_LEAST && place.stack <= SJ_STUB_STACK_MOST);
        if (place.kind == SJ_STUB_FIXED) {
            CHECK(place.address - start < sizeof(sample_bytes));
        }
    }
    CHECK(kinds[SJ_STUB_FIXED] != 0 && kinds[SJ_STUB_COPY] != 0 && kinds[SJ_STUB_CALLED] != 0);
    CHECK(kinds[SJ_STUB_UNKNOWN] == 0);
    sj_stub_place place;
    CHECK(!sj_stub_find(low, module.stubs_bytes, low + area->code_end, read_bytes, NULL, &place));
    CHECK(!sj_stub_find(low, module.stubs_bytes, low - 1, read_bytes, NULL, &place));
}

static void test_every_byte_of_an_area_has_a_place(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(find_every_byte), 0);
}

/* The entry's patch leads to its probe, which calls the code that all probes share. */
static void leave_probes(const char *directory)
{
    apply_sample(directory);
    int32_t distance;
    memcpy(&distance, text + OFFSET + 1, sizeof(distance));
    const uint64_t start = (uint64_t)(uintptr_t)text + OFFSET;
    const uint64_t stub = start + SJ_RETURN_PATCH_BYTES + (uint64_t)(int64_t)distance;
    uint64_t stack[64] = {0};
    const uint64_t sp = (uint64_t)(uintptr_t)&stack[32];
    sj_stub_state state = {.pc = stub, .sp = sp};
    CHECK(sj_stubs_leave(&state));
    CHECK(state.pc == start && state.sp == sp && !state.is_behind);

    enum { PROBE_BYTES = 13 };
    int32_t to_shared;
    memcpy(&to_shared, (const void *)(uintptr_t)(stub + PROBE_BYTES - 4), sizeof(to_shared));
    const uint64_t shared = stub + PROBE_BYTES + (uint64_t)(int64_t)to_shared;
    stack[31] = stub + PROBE_BYTES;
    state = (sj_stub_state){.pc = shared, .sp = sp - sizeof(uint64_t)};
    CHECK(sj_stubs_leave(&state));
    CHECK(state.pc == start && state.sp == sp && !state.is_behind);

    state = (sj_stub_state){.pc = start, .sp = sp};
    CHECK(!sj_stubs_leave(&state));
    state = (sj_stub_state){.pc = stub, .sp = sp};
    sj_hooks_forget(&module);
    CHECK(!sj_stubs_leave(&state));
}

static void test_a_thread_in_a_probe_is_at_the_function(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(leave_probes), 0);
}

/* The bytes of another process may have any value. */
static void test_damaged_areas_are_refused(void **state)
{
    (void)state;
    _Alignas(8) uint8_t bytes[256];
    const uint64_t low = (uint64_t)(uintptr_t)bytes;
    sj_stub_place place;
    for (uint32_t seed = 0; seed < 20000; seed++) {
        uint32_t random = seed * 2654435761U + 1;
        for (size_t i = 0; i < sizeof(bytes); i++) {
            random = random * 1103515245U + 12345U;
            bytes[i] = (uint8_t)(random >> 24);
        }
        sj_stub_area *area = (sj_stub_area *)(void *)(bytes + SJ_STUB_AREA_OFFSET);
        area->magic = SJ_STUB_AREA_MAGIC;
        if (seed % 2 != 0) {
            area->code_end = seed % 200;
            area->map = seed % 260;
            area->count = seed % 30;
        }
        if (sj_stub_find(low, sizeof(bytes), low + seed % sizeof(bytes), read_bytes, NULL,
                         &place)) {
            assert_in_range(place.kind, SJ_STUB_FIXED, SJ_STUB_UNKNOWN);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte_of_an_area_has_a_place),
        cmocka_unit_test(test_a_thread_in_a_probe_is_at_the_function),
        cmocka_unit_test(test_damaged_areas_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
