/* Each function of a plan is patched completely or not at all. Unhooking restores every byte. */
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/hooks.h"
#include "agent/inproc/hooks/internal.h"
#include "agent/inproc/recorder/maps.h"
#include "agent/planner/planner.h"
#include "tests/agent/inproc/core/plan_builder.h"
#include "tests/agent/inproc/recorder/probe_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sys/uio.h>

typedef long (*triple_function)(long a, long b);

enum { OFFSET = 0x100, PAGE = 4096, FIRST_FUNCTION = 40 };

static uint8_t *text;
static sample_plan plan;
static sj_hooked_module module;
static sj_link_failure failures[4];
static sj_hooks_report report;

static void make_text(void)
{
    text = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(text != MAP_FAILED);
    memset(text, 0xcc, PAGE);
    memcpy(text + OFFSET, sample_bytes, sizeof(sample_bytes));
    CHECK(mprotect(text, PAGE, PROT_READ | PROT_EXEC) == 0);
    build_plan(&plan, OFFSET);
    report = (sj_hooks_report){.failures = failures, .failures_capacity = 4};
}

static sj_status apply(void)
{
    return sj_hooks_apply(&plan, sizeof(plan), (uint64_t)(uintptr_t)text, FIRST_FUNCTION, &module,
                          &report);
}

static long call(void)
{
    return ((triple_function)(uintptr_t)(text + OFFSET))(2, 3);
}

/* Reads the protection letters of a mapping from /proc/self/maps. */
static void read_protection(const void *address, char protection[5])
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    protection[0] = '\0';
    while (fgets(line, sizeof(line), maps) != NULL) {
        unsigned long low;
        unsigned long high;
        char found[5];
        if (sscanf(line, "%lx-%lx %4s", &low, &high, found) == 3 &&
            low <= (unsigned long)(uintptr_t)address && (unsigned long)(uintptr_t)address < high) {
            memcpy(protection, found, 5);
        }
    }
    fclose(maps);
}

static void apply_and_undo(const char *directory)
{
    uint8_t before[PAGE];
    char protection[5];
    const sj_link_welcome welcome = make_welcome(2, 2, SJ_FULL_DROP_NEW);
    make_text();
    memcpy(before, text, PAGE);
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    char path[128];
    snprintf(path, sizeof(path), "%s/1.1.arena", directory);
    uint8_t *arena = map_arena_file(path);
    CHECK(apply() == SJ_OK && report.hooked == 1 && report.failed == 0 && report.stub_bytes > 0);
    CHECK(memcmp(before, text, PAGE) != 0);
    read_protection(text, protection);
    CHECK(strcmp(protection, "r-xp") == 0);
    read_protection(module.stubs, protection);
    CHECK(strcmp(protection, "r-xp") == 0);
    CHECK(call() == 15 && call() == 15);
    const sj_record *records =
        (const sj_record *)(arena + sj_arena_chunk_offset(2, 2, 0, 0) + SJ_CHUNK_HEADER_BYTES);
    CHECK(sj_record_tag(&records[0]) == FIRST_FUNCTION);
    CHECK(sj_record_tag(&records[1]) == (UINT32_C(1) << 30 | FIRST_FUNCTION));
    CHECK(sj_record_stack(&records[0]) == sj_record_stack(&records[1]));

    CHECK(sj_hooks_unpatch(&module) == SJ_OK);
    CHECK(memcmp(before, text, PAGE) == 0);
    read_protection(text, protection);
    CHECK(strcmp(protection, "r-xp") == 0);
    CHECK(call() == 15);
    CHECK(sj_record_tag(&records[4]) == 0);
    CHECK(sj_hooks_unpatch(&module) == SJ_OK);
    const uint8_t *stubs = module.stubs;
    sj_hooks_forget(&module);
    read_protection(stubs, protection);
    CHECK(protection[0] == '\0');
}

static void test_unpatching_restores_every_byte(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(apply_and_undo), 0);
}

static void leave_alone(sj_skip reason)
{
    uint8_t before[PAGE];
    memcpy(before, text, PAGE);
    seal_plan(&plan);
    CHECK(apply() == SJ_OK);
    CHECK(report.hooked == 0 && report.failed == 1);
    CHECK(failures[0].function == 0 && failures[0].skip == (uint32_t)reason);
    CHECK(memcmp(before, text, PAGE) == 0);
    CHECK(call() == 15);
    sj_hooks_forget(&module);
}

static void refuse_functions(const char *directory)
{
    (void)directory;
    make_text();
    plan.patches[1].original[4] ^= 1; /* the head, which is written last */
    leave_alone(SJ_SKIP_CODE_DIFFERS);
    build_plan(&plan, OFFSET);
    /* Byte 5 lies after the jump, but in the window that the stub repeats. */
    plan.patches[1].window = 6;
    memcpy(plan.patches[1].original, sample_bytes, 6);
    plan.patches[1].original[5] ^= 1;
    leave_alone(SJ_SKIP_CODE_DIFFERS);
    build_plan(&plan, OFFSET);
    plan.patches[1].kind = SJ_PATCH_TRAP;
    plan.patches[1].bytes = 1;
    leave_alone(SJ_SKIP_TAIL_BLOCKED);
    build_plan(&plan, OFFSET);
    /* The stub jumps to a label that it does not have. */
    const uint8_t to_nowhere[] = {SJ_OPERATION_COPY_TO_LABEL, 5, 0xe9, 0, 0, 0, 0, 1, 7};
    memcpy(plan.operations + 48, to_nowhere, sizeof(to_nowhere));
    plan.stubs[1].operations = 48;
    plan.stubs[1].operations_bytes = sizeof(to_nowhere);
    leave_alone(SJ_SKIP_UNDECODABLE);
    build_plan(&plan, OFFSET);
    /* The stub jumps back by 4 GiB. */
    uint8_t *jump = plan.operations + 1 + 2 + 5;
    CHECK(*jump++ == SJ_OPERATION_JUMP);
    plan.stubs[0].operations = 40;
    memcpy(plan.operations + 40, plan.operations, 8);
    plan.operations[48] = SJ_OPERATION_JUMP;
    plan.stubs[0].operations_bytes =
        9 +
        (uint32_t)(put_varint(plan.operations + 49, UINT64_C(1) << 33) - (plan.operations + 49));
    leave_alone(SJ_SKIP_STUB_TOO_FAR);
}

static void test_a_function_that_cannot_be_hooked_is_excluded(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(refuse_functions), 0);
}

static void spare_pages(const char *directory)
{
    (void)directory;
    text = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(text != MAP_FAILED);
    report = (sj_hooks_report){.failures = failures, .failures_capacity = 4};
    sj_hooks_avoid_page_crossings();
    for (uint32_t offset = PAGE - 12; offset < PAGE + 2; offset++) {
        /* The head and, five bytes later, the tail are five bytes long. */
        const bool crosses = offset % PAGE > PAGE - 5 || (offset + 5) % PAGE > PAGE - 5;
        CHECK(mprotect(text, 2 * PAGE, PROT_READ | PROT_WRITE) == 0);
        memset(text, 0xcc, 2 * PAGE);
        memcpy(text + offset, sample_bytes, sizeof(sample_bytes));
        CHECK(mprotect(text, 2 * PAGE, PROT_READ | PROT_EXEC) == 0);
        build_plan(&plan, offset);
        CHECK(apply() == SJ_OK);
        CHECK(report.hooked == (crosses ? 0 : 1));
        CHECK(!crosses || failures[0].skip == SJ_SKIP_CROSSES_PAGE);
        CHECK(sj_hooks_unpatch(&module) == SJ_OK);
        CHECK(memcmp(text + offset, sample_bytes, sizeof(sample_bytes)) == 0);
        sj_hooks_forget(&module);
    }
}

static void test_attached_processes_have_no_patch_over_a_page_boundary(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(spare_pages), 0);
}

/* Damages every byte of the file in turn, and cuts it everywhere. Each plan is refused, and nothing
 * is patched. */
static void test_damaged_plans_are_refused(void **state)
{
    (void)state;
    make_text();
    for (size_t i = 0; i < sizeof(plan); i++) {
        ((uint8_t *)&plan)[i] ^= 0x40;
        assert_int_not_equal(apply(), SJ_OK);
        assert_int_not_equal(sj_plan_check(&plan, i), SJ_OK);
        ((uint8_t *)&plan)[i] ^= 0x40;
    }
    assert_int_equal(sj_plan_check(&plan, sizeof(plan)), SJ_OK);
    assert_int_equal(memcmp(text + OFFSET, sample_bytes, sizeof(sample_bytes)), 0);
}

/* The checksum alone does not protect: a plan with a correct checksum and wrong offsets is refused,
 * too. */
static void test_plans_with_wrong_offsets_are_refused(void **state)
{
    (void)state;
    uint32_t *const fields[] = {&plan.header.function_count,   &plan.header.functions_offset,
                                &plan.header.stub_count,       &plan.header.stubs_offset,
                                &plan.header.operations_bytes, &plan.header.operations_offset,
                                &plan.header.patch_count,      &plan.header.patches_offset,
                                &plan.header.strings_bytes,    &plan.header.strings_offset,
                                &plan.header.path_name,        &plan.function.name,
                                &plan.function.first_patch,    &plan.stubs[1].function,
                                &plan.stubs[1].operations,     &plan.stubs[1].operations_bytes,
                                &plan.patches[0].stub,         &plan.patches[0].function};
    make_text();
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        build_plan(&plan, OFFSET);
        *fields[i] = UINT32_C(0x7ffffff8);
        seal_plan(&plan);
        assert_int_equal(sj_plan_check(&plan, sizeof(plan)), SJ_ECORRUPT);
    }
    build_plan(&plan, OFFSET);
    plan.header.machine = EM_AARCH64;
    seal_plan(&plan);
    assert_int_equal(apply(), SJ_EUNSUPPORTED);
    build_plan(&plan, OFFSET);
    plan.patches[0].offset = OFFSET + 6;
    seal_plan(&plan);
    assert_int_equal(apply(), SJ_ECORRUPT);
}

/* Areas that are large enough for huge pages begin at a huge page, in reach of the module. */
static void test_large_areas_are_aligned_to_huge_pages(void **state)
{
    (void)state;
    enum { HUGE_PAGE = 1 << 21, BYTES = 3 * HUGE_PAGE + 5 * 65536 };
    make_text();
    const uint64_t low = (uint64_t)(uintptr_t)text;
    const uint64_t place = (uint64_t)(uintptr_t)sj_near_map(low, low + PAGE, BYTES);
    assert_int_not_equal(place, 0);
    assert_int_equal(place % HUGE_PAGE, 0);
    assert_true(place < low ? low + PAGE - place < SJ_ARCH_REACH_BYTES
                            : place + BYTES - low < SJ_ARCH_REACH_BYTES);
    assert_int_equal(munmap((void *)(uintptr_t)place, BYTES), 0);
}

/* Maps the free addresses in from..to. Writes the mappings to `parts`, for munmap, and returns
 * their number. */
static size_t fill(uint64_t from, uint64_t to, struct iovec *parts, size_t space)
{
    char buffer[SJ_MAPS_BYTES];
    sj_maps maps;
    sj_mapping mapping;
    size_t count = 0;
    assert_true(sj_maps_open(&maps, buffer, sizeof(buffer)));
    while (from < to && sj_maps_next(&maps, &mapping)) {
        const uint64_t end = mapping.low < to ? mapping.low : to;
        if (end > from) {
            void *part = (void *)(uintptr_t)from;
            assert_true(count < space);
            assert_ptr_equal(mmap(part, end - from, PROT_NONE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
                                  -1, 0),
                             part);
            parts[count++] = (struct iovec){.iov_base = part, .iov_len = end - from};
        }
        from = mapping.high > from ? mapping.high : from;
    }
    sj_maps_close(&maps);
    return count;
}

/* The module's jumps reach the main thread's stack, and the addresses below the module are in use.
 * Stubs must leave the stack space to grow. */
static void test_areas_leave_space_for_the_stack(void **state)
{
    (void)state;
    enum { BYTES = 5 * 65536, STACK_GROWS = 1 << 26 };
    struct iovec parts[256];
    char buffer[SJ_MAPS_BYTES];
    sj_maps maps;
    sj_mapping mapping = {0};
    assert_true(sj_maps_open(&maps, buffer, sizeof(buffer)));
    while (!mapping.is_stack) {
        assert_true(sj_maps_next(&maps, &mapping));
    }
    sj_maps_close(&maps);
    const uint64_t low = (mapping.low - SJ_ARCH_REACH_BYTES + 65536) & ~UINT64_C(0xffff);
    const uint64_t lowest = (low - SJ_ARCH_REACH_BYTES) & ~UINT64_C(0xffff);
    const size_t filled = fill(lowest, low + PAGE, parts, sizeof(parts) / sizeof(parts[0]));
    const uint64_t place = (uint64_t)(uintptr_t)sj_near_map(low, low + PAGE, BYTES);
    assert_true(place > low && place + BYTES + STACK_GROWS <= mapping.low);
    assert_int_equal(munmap((void *)(uintptr_t)place, BYTES), 0);
    for (size_t i = 0; i < filled; i++) {
        assert_int_equal(munmap(parts[i].iov_base, parts[i].iov_len), 0);
    }
}

static void emit_nothing(void *context, struct sj_code_emitter *emitter, uint32_t index)
{
    (void)context, (void)emitter, (void)index;
}

static sj_status apply_entries(sj_hooked_module *entries)
{
    const sj_hooks_entries wanted = {.emit = emit_nothing, .function = 1, .prepare_only = true};
    *entries = (sj_hooked_module){0};
    make_text();
    return sj_hooks_apply_entries(&plan, sizeof(plan), (uint64_t)(uintptr_t)text, &wanted, entries,
                                  &report);
}

/* If the table of entries is full, no later plan patches an entry that an earlier one owns. */
static void test_entries_that_the_table_cannot_hold_are_refused(void **state)
{
    (void)state;
    enum { MOST = 1000 };
    sj_hooked_module entries;
    sj_status status = SJ_OK;
    uint32_t applied = 0;
    for (; applied < MOST && status == SJ_OK; applied++) {
        status = apply_entries(&entries);
        if (status == SJ_OK) {
            assert_int_not_equal(entries.change_count, 0);
            assert_int_equal(apply(), SJ_OK);
            assert_int_equal(module.change_count, 0);
            sj_hooks_forget(&module);
        }
    }
    assert_int_equal(status, SJ_ELIMIT);
    assert_true(applied > 64);
    assert_int_equal(entries.change_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unpatching_restores_every_byte),
        cmocka_unit_test(test_a_function_that_cannot_be_hooked_is_excluded),
        cmocka_unit_test(test_attached_processes_have_no_patch_over_a_page_boundary),
        cmocka_unit_test(test_damaged_plans_are_refused),
        cmocka_unit_test(test_large_areas_are_aligned_to_huge_pages),
        cmocka_unit_test(test_areas_leave_space_for_the_stack),
        cmocka_unit_test(test_plans_with_wrong_offsets_are_refused),
        cmocka_unit_test(test_entries_that_the_table_cannot_hold_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
