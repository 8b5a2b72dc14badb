/* Later processes use the stubs that an earlier process has kept, but only if everything is the
 * same. */
#include "agent/inproc/hooks/ready.h"

#include "tests/agent/inproc/core/plan_builder.h"
#include "tests/agent/inproc/recorder/probe_code.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>

#include <cmocka.h>

typedef long (*triple_function)(long a, long b);

enum { OFFSET = 0x100, PAGE = 4096, FIRST_FUNCTION = 40 };

static uint8_t *text;
static sample_plan plan;
static sj_hooked_module module;
static sj_link_failure failures[4];
static sj_hooks_report report;
static char plan_path[128];
static char kept_path[140];

static void write_file(const char *path, const void *bytes, size_t count)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(file >= 0 && write(file, bytes, count) == (ssize_t)count && close(file) == 0);
}

static void begin(const char *directory)
{
    const sj_link_welcome welcome = make_welcome(2, 2, SJ_FULL_DROP_NEW);
    text = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(text != MAP_FAILED);
    memset(text, 0xcc, PAGE);
    memcpy(text + OFFSET, sample_bytes, sizeof(sample_bytes));
    CHECK(mprotect(text, PAGE, PROT_READ | PROT_EXEC) == 0);
    build_plan(&plan, OFFSET);
    snprintf(plan_path, sizeof(plan_path), "%s/1.plan", directory);
    snprintf(kept_path, sizeof(kept_path), "%s.stubs", plan_path);
    write_file(plan_path, &plan, sizeof(plan));
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
}

static void begin_report(void)
{
    report = (sj_hooks_report){.failures = failures, .failures_capacity = 4};
}

static void unpatch(void)
{
    CHECK(sj_hooks_unpatch(&module) == SJ_OK);
    sj_hooks_forget(&module);
    CHECK(memcmp(text + OFFSET, sample_bytes, sizeof(sample_bytes)) == 0);
}

static sj_ready_plan identify_plan(void)
{
    sj_ready_plan file;
    const int plan_file = open(plan_path, O_RDONLY | O_CLOEXEC);
    CHECK(plan_file >= 0 && sj_ready_identify(plan_file, &file) && close(plan_file) == 0);
    return file;
}

/* Applies the plan as a process does that finds no ready stubs and has mapped `file`. */
static void apply_plan_of(const sj_ready_plan *file)
{
    begin_report();
    CHECK(sj_hooks_apply(&plan, sizeof(plan), (uint64_t)(uintptr_t)text, FIRST_FUNCTION, &module,
                         &report) == SJ_OK);
    CHECK(report.hooked == 1 && report.is_movable);
    sj_ready_keep(plan_path, file, &plan, &module, &report);
    unpatch();
}

static void apply_plan(void)
{
    const sj_ready_plan file = identify_plan();
    apply_plan_of(&file);
}

static bool apply_ready(uint32_t first_function)
{
    const sj_ready_place place = {.bias = (uint64_t)(uintptr_t)text,
                                  .text_low = (uint64_t)(uintptr_t)text,
                                  .text_high = (uint64_t)(uintptr_t)text + PAGE,
                                  .first_function = first_function};
    begin_report();
    return sj_ready_apply(plan_path, &place, &module, &report);
}

static void expect_nothing(uint32_t first_function)
{
    CHECK(!apply_ready(first_function));
    CHECK(module.stubs == NULL && module.changes == NULL && module.change_count == 0);
}

static long call(void)
{
    return ((triple_function)(uintptr_t)(text + OFFSET))(2, 3);
}

static void keep_and_use(const char *directory)
{
    struct stat kept;
    char arena_path[160];
    begin(directory);
    snprintf(arena_path, sizeof(arena_path), "%s/1.1.arena", directory);
    uint8_t *arena = map_arena_file(arena_path);
    expect_nothing(FIRST_FUNCTION);
    apply_plan(); /* keeps no stubs yet, because most programs have one process */
    CHECK(stat(kept_path, &kept) == 0 && kept.st_size == 0);
    expect_nothing(FIRST_FUNCTION);
    apply_plan();
    CHECK(stat(kept_path, &kept) == 0 && kept.st_size > PAGE && (kept.st_mode & 0777) == 0600);
    for (int round = 0; round < 3; round++) {
        CHECK(apply_ready(FIRST_FUNCTION));
        CHECK(report.hooked == 1 && report.failed == 0 && report.stub_bytes > 0);
        CHECK(memcmp(text + OFFSET, sample_bytes, sizeof(sample_bytes)) != 0);
        CHECK(call() == 15);
        unpatch();
        CHECK(call() == 15);
    }
    const sj_record *records =
        (const sj_record *)(arena + sj_arena_chunk_offset(2, 2, 0, 0) + SJ_CHUNK_HEADER_BYTES);
    for (int round = 0; round < 3; round++) {
        CHECK(sj_record_tag(&records[2 * round]) == FIRST_FUNCTION);
        CHECK(sj_record_tag(&records[2 * round + 1]) == (UINT32_C(1) << 30 | FIRST_FUNCTION));
    }
    CHECK(sj_record_tag(&records[6]) == 0);
}

static void test_the_third_process_uses_what_the_second_kept(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(keep_and_use), 0);
}

static void refuse_others(const char *directory)
{
    struct stat kept;
    begin(directory);
    apply_plan();
    apply_plan();
    CHECK(stat(kept_path, &kept) == 0 && kept.st_size > PAGE);
    expect_nothing(FIRST_FUNCTION + 1);
    /* Another user may have written the file. */
    CHECK(chmod(kept_path, 0620) == 0);
    expect_nothing(FIRST_FUNCTION);
    CHECK(chmod(kept_path, 0600) == 0);
    /* The code differs from the plan's. */
    CHECK(mprotect(text, PAGE, PROT_READ | PROT_WRITE) == 0);
    text[OFFSET + 1] ^= 1;
    expect_nothing(FIRST_FUNCTION);
    text[OFFSET + 1] ^= 1;
    CHECK(mprotect(text, PAGE, PROT_READ | PROT_EXEC) == 0);
    /* Another mapping has the address of the stubs. */
    CHECK(apply_ready(FIRST_FUNCTION));
    void *place = module.stubs;
    unpatch();
    CHECK(mmap(place, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) ==
          place);
    expect_nothing(FIRST_FUNCTION);
    CHECK(munmap(place, PAGE) == 0);
    CHECK(apply_ready(FIRST_FUNCTION));
    unpatch();
    CHECK(truncate(kept_path, kept.st_size - 1) == 0);
    expect_nothing(FIRST_FUNCTION);
    CHECK(truncate(kept_path, 100) == 0);
    expect_nothing(FIRST_FUNCTION);
}

static void test_stubs_that_do_not_fit_are_not_reused(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(refuse_others), 0);
}

static void follow_the_plan(const char *directory)
{
    begin(directory);
    apply_plan();
    apply_plan();
    CHECK(apply_ready(FIRST_FUNCTION));
    unpatch();
    CHECK(unlink(plan_path) == 0);
    expect_nothing(FIRST_FUNCTION);
    write_file(plan_path, &plan, sizeof(plan)); /* a new policy makes a new plan */
    expect_nothing(FIRST_FUNCTION);
    apply_plan();
    CHECK(apply_ready(FIRST_FUNCTION));
    unpatch();
}

/* A policy may replace the plan after a process has mapped it and before the process keeps its
 * stubs. */
static void keep_of_replaced_plan(const char *directory)
{
    char other_path[140];
    begin(directory);
    apply_plan();
    const sj_ready_plan mapped = identify_plan();
    snprintf(other_path, sizeof(other_path), "%s.other", plan_path);
    write_file(other_path, &plan, sizeof(plan));
    CHECK(rename(other_path, plan_path) == 0);
    apply_plan_of(&mapped);
    expect_nothing(FIRST_FUNCTION);
    apply_plan();
    CHECK(apply_ready(FIRST_FUNCTION));
    unpatch();
}

static void test_stubs_are_kept_for_the_plan_that_was_mapped(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(keep_of_replaced_plan), 0);
}

static void keep_after_killed(const char *directory)
{
    char left_path[160];
    begin(directory);
    apply_plan();
    snprintf(left_path, sizeof(left_path), "%s.new", kept_path);
    write_file(left_path, "", 0);
    snprintf(left_path, sizeof(left_path), "%s.%d", kept_path, (int)getpid() + 1);
    write_file(left_path, "", 0);
    apply_plan();
    CHECK(apply_ready(FIRST_FUNCTION));
    unpatch();
    snprintf(left_path, sizeof(left_path), "%s.%d", kept_path, (int)getpid());
    CHECK(access(left_path, F_OK) != 0);
}

static void test_stubs_of_a_killed_process_are_replaced(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(keep_after_killed), 0);
}

static void test_stubs_of_another_plan_are_not_reused(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(follow_the_plan), 0);
}

/* Damages each of the first 512 bytes in turn: the header and the changes. Only the text of the
 * functions changes, and it is restored. */
static void damage(const char *directory)
{
    static uint8_t bytes[1 << 16];
    begin(directory);
    apply_plan();
    apply_plan();
    const int file = open(kept_path, O_RDWR | O_CLOEXEC);
    CHECK(file >= 0);
    const ssize_t size = read(file, bytes, sizeof(bytes));
    CHECK(size > PAGE && size < (ssize_t)sizeof(bytes));
    for (ssize_t i = 0; i < 512; i++) {
        const uint8_t damaged = bytes[i] ^ 0x40;
        CHECK(pwrite(file, &damaged, 1, i) == 1);
        if (apply_ready(FIRST_FUNCTION)) {
            CHECK(sj_hooks_unpatch(&module) == SJ_OK);
            sj_hooks_forget(&module);
        }
        CHECK(memcmp(text, "\xcc\xcc\xcc\xcc", 4) == 0);
        CHECK(pwrite(file, bytes + i, 1, i) == 1);
    }
    CHECK(close(file) == 0);
}

static void test_damaged_headers_do_no_harm(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(damage), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_third_process_uses_what_the_second_kept),
        cmocka_unit_test(test_stubs_that_do_not_fit_are_not_reused),
        cmocka_unit_test(test_stubs_of_another_plan_are_not_reused),
        cmocka_unit_test(test_stubs_are_kept_for_the_plan_that_was_mapped),
        cmocka_unit_test(test_stubs_of_a_killed_process_are_replaced),
        cmocka_unit_test(test_damaged_headers_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
