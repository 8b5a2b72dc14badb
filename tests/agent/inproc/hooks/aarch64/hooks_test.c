/* Tests AArch64: instructions that depend on their address do the same in a stub. Plans are
 * applied, and removed to the last byte. */
#include "agent/abi/page.h"
#include "agent/abi/plan_crc.h"
#include "agent/inproc/hooks/hooks.h"
#include "agent/planner/planner.h"
#include "tests/agent/inproc/recorder/probe_code.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { PAGE = 4096, FIRST_FUNCTION = 40, RET = 0xd65f03c0u, MOV_0_7 = 0xd28000e0u };

static uint8_t *map_code(void)
{
    uint8_t *code = mmap(NULL, SJ_PAGE_MOST_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(code != MAP_FAILED);
    return code;
}

static void put(sj_code_emitter *emitter, uint32_t word)
{
    sj_code_emit_bytes(emitter, (const uint8_t *)&word, sizeof(word));
}

typedef uint64_t (*moved_function)(uint64_t x0, uint64_t x1);

/* Runs the instruction `word`, relocated so that it refers to `target`, then `ret`. If
 * `sets_result`, `mov x0, #7` comes before `ret`. Returns x0. */
static uint64_t run_moved(uint32_t word, const void *target, bool sets_result, uint64_t argument)
{
    uint8_t *code = map_code();
    sj_code_emitter emitter = {.at = (uint64_t)(uintptr_t)code};
    sj_code_emit_relative(&emitter, (const uint8_t *)&word, sizeof(word), 0,
                          (uint64_t)(uintptr_t)target);
    if (sets_result) {
        put(&emitter, MOV_0_7);
    }
    put(&emitter, RET);
    sj_arch_sync_code((uint64_t)(uintptr_t)code, PAGE);
    CHECK(!emitter.too_far);
    return ((moved_function)(uintptr_t)code)(argument, 1);
}

/* Returns code that a branch can lead to: mov x0, #9; ret. */
static const uint8_t *make_place(void)
{
    uint8_t *code = map_code();
    sj_code_emitter emitter = {.at = (uint64_t)(uintptr_t)code + 256};
    put(&emitter, 0xd2800120);
    put(&emitter, RET);
    sj_arch_sync_code((uint64_t)(uintptr_t)code, PAGE);
    return code + 256;
}

static void move_branches(const char *directory)
{
    const uint8_t *place = make_place();
    (void)directory;
    CHECK(run_moved(0x14000000, place, true, 0) == 9); /* b */
    CHECK(run_moved(0xb4000000, place, true, 0) == 9); /* cbz x0 */
    CHECK(run_moved(0xb4000000, place, true, 1) == 7);
    CHECK(run_moved(0xb5000000, place, true, 0) == 7); /* cbnz x0 */
    CHECK(run_moved(0xb5ffffe0, place, true, 1) == 9);
    CHECK(run_moved(0x34000000, place, true, UINT64_C(1) << 32) == 9); /* cbz w0 */
    CHECK(run_moved(0xb6280000, place, true, UINT64_C(1) << 37) == 7); /* tbz x0, #37 */
    CHECK(run_moved(0xb6280000, place, true, UINT64_C(1) << 36) == 9);
    CHECK(run_moved(0x37180000, place, true, 8) == 9); /* tbnz w0, #3 */
    CHECK(run_moved(0x37180000, place, true, 16) == 7);
    for (uint32_t condition = 0; condition < 14; condition += 2) {
        /* With given flags, exactly one of a condition and its opposite is true. */
        const uint64_t plain = run_moved(0x54000000 | condition, place, true, 0);
        const uint64_t opposite = run_moved(0x54000001 | condition, place, true, 0);
        CHECK(plain + opposite == 16);
    }
    CHECK(run_moved(0x5400000e, place, true, 0) == 9); /* b.al */
}

static void move_addresses(const char *directory)
{
    static _Alignas(16) const uint64_t values[] = {UINT64_C(0xfedcba9887654321), 5};
    const uint64_t page = (uint64_t)(uintptr_t)values & ~UINT64_C(4095);
    uint8_t *near = map_code();
    (void)directory;
    memcpy(near + 12, values, sizeof(values));
    CHECK(run_moved(0x10000000, near + 13, false, 0) == (uint64_t)(uintptr_t)near + 13); /* adr */
    CHECK(run_moved(0x90000000, near, false, 0) == (uint64_t)(uintptr_t)near);           /* adrp */
    CHECK(run_moved(0x18000000, near + 12, false, 0) == 0x87654321);                   /* ldr w0 */
    CHECK(run_moved(0x58000000, near + 12, false, 0) == values[0]);                    /* ldr x0 */
    CHECK(run_moved(0x98000000, near + 12, false, 0) == UINT64_C(0xffffffff87654321)); /* ldrsw */
    CHECK(page != 0);
}

static void test_moved_instructions_lead_to_the_same_places(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(move_branches), 0);
    assert_int_equal(run_in_child(move_addresses), 0);
}

static void push_return(const char *directory)
{
    const uint8_t *place = make_place();
    uint8_t *code = map_code();
    sj_code_emitter emitter = {.at = (uint64_t)(uintptr_t)code};
    (void)directory;
    put(&emitter, 0xaa1e03e1);                                          /* mov x1, x30 */
    sj_code_emit_push_return(&emitter, (uint64_t)(uintptr_t)place + 4); /* its ret */
    put(&emitter, 0xaa1e03e0);                                          /* mov x0, x30 */
    put(&emitter, 0xaa0103fe);                                          /* mov x30, x1 */
    put(&emitter, RET);
    sj_arch_sync_code((uint64_t)(uintptr_t)code, PAGE);
    CHECK(((moved_function)(uintptr_t)code)(0, 0) == (uint64_t)(uintptr_t)place + 4);

    emitter.too_far = false;
    sj_code_emit_jump(&emitter, (uint64_t)(uintptr_t)code + (UINT64_C(1) << 28));
    CHECK(emitter.too_far);
}

static void test_returns_are_true_and_far_jumps_are_refused(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(push_return), 0);
}

/* add x0, x0, x1; add x0, x0, x0, lsl #1; ret: three times the sum. */
static const uint32_t sample[] = {0x8b010000, 0x8b000400, RET};

typedef struct sample_plan {
    sj_plan_header header;
    sj_plan_function function;
    sj_plan_stub stubs[2];
    _Alignas(8) uint8_t operations[32];
    sj_plan_patch patches[2];
    _Alignas(8) char strings[8];
} sample_plan;

static uint32_t put_operations(uint8_t *at, bool is_head)
{
    const uint32_t word = is_head ? sample[0] : sample[2];
    at[0] = is_head ? SJ_OPERATION_ENTER : SJ_OPERATION_LEAVE;
    at[1] = SJ_OPERATION_COPY;
    at[2] = sizeof(word);
    memcpy(at + 3, &word, sizeof(word));
    if (is_head) {
        at[7] = SJ_OPERATION_JUMP;
        at[8] = 4 << 1;
    }
    return is_head ? 9 : 7;
}

static void build_plan(sample_plan *plan)
{
    memset(plan, 0, sizeof(*plan));
    plan->header = (sj_plan_header){.magic = SJ_PLAN_MAGIC,
                                    .version = SJ_PLAN_VERSION,
                                    .machine = EM_AARCH64,
                                    .file_bytes = sizeof(*plan),
                                    .text_high = sizeof(sample),
                                    .function_count = 1,
                                    .functions_offset = offsetof(sample_plan, function),
                                    .stub_count = 2,
                                    .stubs_offset = offsetof(sample_plan, stubs),
                                    .operations_bytes = sizeof(plan->operations),
                                    .operations_offset = offsetof(sample_plan, operations),
                                    .patch_count = 2,
                                    .patches_offset = offsetof(sample_plan, patches),
                                    .stub_code_bytes = 2048,
                                    .strings_bytes = sizeof(plan->strings),
                                    .strings_offset = offsetof(sample_plan, strings)};
    plan->function = (sj_plan_function){.size = sizeof(sample),
                                        .patch_count = 2,
                                        .technique = SJ_TECHNIQUE_INLINE,
                                        .source = SJ_SYMBOL_SYMTAB};
    for (uint32_t i = 0; i < 2; i++) {
        plan->stubs[i] = (sj_plan_stub){.operations = 16 * i, .code_bytes = 1024};
        plan->stubs[i].operations_bytes = put_operations(plan->operations + 16 * i, i == 0);
        plan->patches[i] = (sj_plan_patch){
            .offset = 8 * i, .stub = i, .kind = SJ_PATCH_BRANCH26, .bytes = 4, .window = 4};
        memcpy(plan->patches[i].original, &sample[2 * i], 4);
    }
    plan->header.crc32c = sj_plan_crc(plan, sizeof(*plan));
}

static void apply_and_undo(const char *directory)
{
    static sample_plan plan;
    uint8_t before[PAGE];
    sj_hooked_module module = {0};
    sj_link_failure failures[2];
    sj_hooks_report report = {.failures = failures, .failures_capacity = 2};
    const sj_link_welcome welcome = make_welcome(2, 2, SJ_FULL_DROP_NEW);
    char path[128];
    uint8_t *text = map_code();
    memcpy(text, sample, sizeof(sample));
    CHECK(mprotect(text, SJ_PAGE_MOST_BYTES, PROT_READ | PROT_EXEC) == 0);
    memcpy(before, text, PAGE);
    build_plan(&plan);
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    snprintf(path, sizeof(path), "%s/1.1.arena", directory);
    uint8_t *arena = map_arena_file(path);
    const moved_function call = (moved_function)(uintptr_t)text;
    CHECK(call(2, 3) == 15);
    for (uint32_t round = 0; round < 50; round++) {
        CHECK(sj_hooks_apply(&plan, sizeof(plan), (uint64_t)(uintptr_t)text, FIRST_FUNCTION,
                             &module, &report) == SJ_OK);
        CHECK(report.hooked == 1 && report.failed == 0 && memcmp(before, text, PAGE) != 0);
        CHECK(call(2, 3) == 15 && call(3, 4) == 21);
        CHECK(sj_hooks_unpatch(&module) == SJ_OK && memcmp(before, text, PAGE) == 0);
        CHECK(call(2, 3) == 15);
        sj_hooks_forget(&module);
    }
    tally sum = {0};
    drain_thread(arena, 0, false, &sum);
    CHECK(sum.enters == 100 && sum.leaves == 100);

    plan.patches[0].original[0] ^= 1;
    plan.header.crc32c = sj_plan_crc(&plan, sizeof(plan));
    CHECK(sj_hooks_apply(&plan, sizeof(plan), (uint64_t)(uintptr_t)text, FIRST_FUNCTION, &module,
                         &report) == SJ_OK);
    CHECK(report.hooked == 0 && failures[0].skip == SJ_SKIP_CODE_DIFFERS);
    CHECK(memcmp(before, text, PAGE) == 0);
    plan.header.machine = EM_X86_64;
    plan.header.crc32c = sj_plan_crc(&plan, sizeof(plan));
    CHECK(sj_hooks_apply(&plan, sizeof(plan), (uint64_t)(uintptr_t)text, FIRST_FUNCTION, &module,
                         &report) == SJ_EUNSUPPORTED);
}

static void test_plans_are_applied_and_removed_to_the_last_byte(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(apply_and_undo), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moved_instructions_lead_to_the_same_places),
        cmocka_unit_test(test_returns_are_true_and_far_jumps_are_refused),
        cmocka_unit_test(test_plans_are_applied_and_removed_to_the_last_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
