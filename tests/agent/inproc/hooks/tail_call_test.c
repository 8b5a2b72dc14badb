/* The plan has two functions. The first one ends by a jump to the second. The calls of each hooked
 * function are recorded, and both functions behave the same. */
#include "agent/inproc/hooks/dispatch.h"
#include "agent/inproc/hooks/hooks.h"
#include "agent/planner/planner.h"
#include "tests/agent/inproc/core/plan_builder.h"
#include "tests/agent/inproc/recorder/probe_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef long (*triple_function)(long a, long b);

enum { OFFSET = 0x100, CALLEE_OFFSET = 0x120, PAGE = 4096, FIRST_FUNCTION = 40 };
enum { CALLER, CALLEE, FUNCTIONS, STUBS = 4, PATCHES = 4, PATCH_BYTES = 5, HEAD_BYTES = 5 };

typedef struct tail_plan {
    sj_plan_header header;
    sj_plan_function functions[FUNCTIONS];
    sj_plan_stub stubs[STUBS];
    _Alignas(8) uint8_t operations[128];
    sj_plan_patch patches[PATCHES];
    _Alignas(8) char strings[16];
} tail_plan;

static uint8_t *text;
static tail_plan plan;
static sj_hooked_module module;
static sj_link_failure failures[4];
static sj_hooks_report report;
static const sj_record *records;
static uint32_t seen; /* records seen so far */

static void make_text(void)
{
    text = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(text != MAP_FAILED);
    memset(text, 0xcc, PAGE);
    memcpy(text + OFFSET, sample_bytes, HEAD_BYTES);
    text[OFFSET + HEAD_BYTES] = 0xe9; /* jmp callee */
    const int32_t distance = CALLEE_OFFSET - (OFFSET + HEAD_BYTES + PATCH_BYTES);
    memcpy(text + OFFSET + HEAD_BYTES + 1, &distance, sizeof(distance));
    memcpy(text + CALLEE_OFFSET, sample_bytes, sizeof(sample_bytes));
    CHECK(mprotect(text, PAGE, PROT_READ | PROT_EXEC) == 0);
}

static void add_patch(uint32_t number, uint32_t function, uint32_t stub, uint64_t offset)
{
    plan.patches[number] = (sj_plan_patch){.offset = offset,
                                           .stub = stub,
                                           .function = function,
                                           .kind = SJ_PATCH_JUMP32,
                                           .bytes = PATCH_BYTES,
                                           .window = PATCH_BYTES};
    memcpy(plan.patches[number].original, text + offset, PATCH_BYTES);
}

/* The stub of the callee's head comes after the stub of the caller's tail. */
static void build_tail_plan(uint8_t callee)
{
    const uint8_t tail_call[] = {SJ_OPERATION_TAIL_CALL, callee};
    plan = (tail_plan){0};
    uint32_t used = put_head(plan.operations, OFFSET);
    plan.stubs[0] = (sj_plan_stub){.function = CALLER, .operations_bytes = used};
    memcpy(plan.operations + used, tail_call, sizeof(tail_call));
    plan.stubs[1] = (sj_plan_stub){
        .function = CALLER, .operations = used, .operations_bytes = sizeof(tail_call)};
    used += sizeof(tail_call);
    plan.operations[used] = SJ_OPERATION_FREE_FLAGS; /* a planner adds this for such a callee */
    plan.stubs[2] =
        (sj_plan_stub){.function = CALLEE,
                       .operations = used,
                       .operations_bytes = 1 + put_head(plan.operations + used + 1, CALLEE_OFFSET)};
    used += plan.stubs[2].operations_bytes;
    plan.stubs[3] = (sj_plan_stub){.function = CALLEE,
                                   .operations = used,
                                   .operations_bytes = put_tail(plan.operations + used)};
    for (uint32_t i = 0; i < STUBS; i++) {
        plan.stubs[i].code_bytes = 1024;
    }
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        plan.functions[i] = (sj_plan_function){.offset = i == CALLER ? OFFSET : CALLEE_OFFSET,
                                               .size = sizeof(sample_bytes),
                                               .first_patch = 2 * i,
                                               .patch_count = 2,
                                               .technique = SJ_TECHNIQUE_INLINE,
                                               .source = SJ_SYMBOL_SYMTAB};
    }
    add_patch(0, CALLER, 1, OFFSET + HEAD_BYTES);
    add_patch(1, CALLER, 0, OFFSET);
    add_patch(2, CALLEE, 3, CALLEE_OFFSET + HEAD_BYTES);
    add_patch(3, CALLEE, 2, CALLEE_OFFSET);
    plan.header = (sj_plan_header){.magic = SJ_PLAN_MAGIC,
                                   .version = SJ_PLAN_VERSION,
                                   .machine = EM_X86_64,
                                   .file_bytes = sizeof(plan),
                                   .text_low = OFFSET,
                                   .text_high = CALLEE_OFFSET + sizeof(sample_bytes),
                                   .function_count = FUNCTIONS,
                                   .functions_offset = offsetof(tail_plan, functions),
                                   .stub_count = STUBS,
                                   .stubs_offset = offsetof(tail_plan, stubs),
                                   .operations_bytes = sizeof(plan.operations),
                                   .operations_offset = offsetof(tail_plan, operations),
                                   .patch_count = PATCHES,
                                   .patches_offset = offsetof(tail_plan, patches),
                                   .stub_code_bytes = STUBS * 1024,
                                   .strings_bytes = sizeof(plan.strings),
                                   .strings_offset = offsetof(tail_plan, strings)};
}

static sj_status apply(bool prepare_only)
{
    plan.header.crc32c = 0;
    plan.header.crc32c = plan_crc((const uint8_t *)&plan, sizeof(plan));
    report = (sj_hooks_report){.failures = failures, .failures_capacity = 4};
    return (prepare_only ? sj_hooks_prepare : sj_hooks_apply)(
        &plan, sizeof(plan), (uint64_t)(uintptr_t)text, FIRST_FUNCTION, &module, &report);
}

/* Hooks or unhooks the function as a tracer does from outside. */
static void hook(uint32_t function, bool on)
{
    CHECK(mprotect(text, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    for (uint32_t i = 0; i < module.change_count; i++) {
        const sj_hook_change *change = &module.changes[i];
        if (change->function == FIRST_FUNCTION + function) {
            memcpy((void *)(uintptr_t)change->address, on ? change->patched : change->original,
                   change->bytes);
        }
    }
    CHECK(mprotect(text, PAGE, PROT_READ | PROT_EXEC) == 0);
}

static void start(const char *directory)
{
    const sj_link_welcome welcome = make_welcome(2, 2, SJ_FULL_DROP_NEW);
    char path[128];
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    snprintf(path, sizeof(path), "%s/1.1.arena", directory);
    const uint8_t *arena = map_arena_file(path);
    CHECK(arena != NULL);
    records =
        (const sj_record *)(arena + sj_arena_chunk_offset(2, 2, 0, 0) + SJ_CHUNK_HEADER_BYTES);
}

static bool matches(sj_record_kind kind, uint32_t function)
{
    const uint32_t tag = (uint32_t)kind << SJ_RECORD_FUNCTION_BITS | (FIRST_FUNCTION + function);
    return sj_record_tag(&records[seen++]) == tag;
}

/* Calls the caller, and checks the records of the hooked functions. */
static void check_call(bool records_caller, bool records_callee)
{
    const uint32_t first = seen;
    CHECK(((triple_function)(uintptr_t)(text + OFFSET))(2, 3) == 15);
    if (records_caller) {
        CHECK(matches(SJ_RECORD_ENTER, CALLER) && matches(SJ_RECORD_LEAVE, CALLER));
    }
    if (records_callee) {
        CHECK(matches(SJ_RECORD_ENTER, CALLEE) && matches(SJ_RECORD_LEAVE, CALLEE));
    }
    for (uint32_t i = first; i < seen; i++) {
        CHECK(sj_record_frame(&records[i]) == sj_record_stack(&records[first]));
        CHECK(sj_record_is_tail_call(sj_record_stack(&records[i])) ==
              (records_caller && records_callee && i == first + 1));
    }
    CHECK(sj_record_tag(&records[seen]) == 0);
}

static bool is_one_moment(void)
{
    return sj_record_ticks48(&records[seen - 3]) == sj_record_ticks48(&records[seen - 2]);
}

static void check_all_states(void)
{
    for (int round = 0; round < 20; round++) {
        hook(CALLER, true);
        hook(CALLEE, true);
        check_call(true, true);
        CHECK(is_one_moment());
        hook(CALLEE, false);
        check_call(true, false);
        hook(CALLER, false);
        check_call(false, false);
        hook(CALLEE, true);
        check_call(false, true);
    }
    hook(CALLEE, false);
}

static void toggle(const char *directory)
{
    uint8_t before[PAGE];
    start(directory);
    make_text();
    memcpy(before, text, PAGE);
    for (int prepare_only = 0; prepare_only <= 1; prepare_only++) {
        build_tail_plan(CALLEE);
        CHECK(apply(prepare_only) == SJ_OK && report.hooked == 2 && report.failed == 0);
        check_call(!prepare_only, !prepare_only);
        check_all_states();
        CHECK(sj_hooks_unpatch(&module) == SJ_OK && memcmp(before, text, PAGE) == 0);
        sj_hooks_forget(&module);
    }
}

static void test_both_functions_are_hooked_and_unhooked_separately(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(toggle), 0);
}

/* Another tool has changed the text. The code that the tool has written must run. */
static void patch_by_others(const char *directory)
{
    start(directory);
    make_text();
    build_tail_plan(CALLEE);
    CHECK(apply(false) == SJ_OK);
    hook(CALLEE, false);
    CHECK(mprotect(text, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    text[CALLEE_OFFSET] = 0xe9; /* jmp to a copy elsewhere */
    const int32_t distance = 0x200 - (CALLEE_OFFSET + PATCH_BYTES);
    memcpy(text + CALLEE_OFFSET + 1, &distance, sizeof(distance));
    memcpy(text + 0x200, sample_bytes, sizeof(sample_bytes));
    check_call(true, false);
}

static void test_a_jump_of_another_tool_is_not_taken_for_a_patch(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(patch_by_others), 0);
}

/* The callee records its first argument before its entry. */
static void check_call_with_value(void)
{
    CHECK(((triple_function)(uintptr_t)(text + OFFSET))(2, 3) == 15);
    CHECK(matches(SJ_RECORD_ENTER, CALLER) && matches(SJ_RECORD_LEAVE, CALLER));
    CHECK(sj_record_is_tail_call(sj_record_stack(&records[seen - 1])));
    CHECK(sj_record_value(&records[seen]) == 2 && matches(SJ_RECORD_VALUE, CALLEE));
    CHECK(matches(SJ_RECORD_ENTER, CALLEE) && matches(SJ_RECORD_LEAVE, CALLEE));
}

/* Finds the callee of generated code, as a runtime does. Returns 0 for other addresses and for
 * exits. */
static uint32_t find_callee(uint64_t address, bool at_exit)
{
    return address == (uint64_t)(uintptr_t)text + CALLEE_OFFSET && !at_exit ? 1 : 0;
}

static uint32_t list_first(uint32_t number, bool at_exit,
                           sj_plain_value values[SJ_VALUES_PER_FUNCTION])
{
    CHECK(number == 1 && !at_exit);
    values[0] = (sj_plain_value){.descriptor = sj_value_descriptor(1, SJ_VALUE_LONG), .bytes = 8};
    return 1;
}

static const sj_generated_values callee_values = {.find = find_callee, .list_plain = list_first};

static void record_without_tail_call_entry(const char *directory)
{
    start(directory);
    make_text();
    build_tail_plan(CALLEE);
    plan.functions[CALLEE].skip = SJ_SKIP_FILTERED;
    CHECK(apply(false) == SJ_OK && report.hooked == 1);
    check_call(true, false);
    CHECK(sj_hooks_unpatch(&module) == SJ_OK);

    build_tail_plan(CALLEE);
    plan.patches[2].original[0] ^= 1; /* the callee's code differs */
    CHECK(apply(false) == SJ_OK && report.hooked == 1 && report.failed == 1);
    check_call(true, false);
    CHECK(sj_hooks_unpatch(&module) == SJ_OK);

    build_tail_plan(CALLEE);
    plan.functions[CALLEE].values[0] = sj_value_descriptor(1, SJ_VALUE_LONG);
    CHECK(apply(false) == SJ_OK && report.hooked == 2);
    check_call_with_value();
    CHECK(sj_hooks_unpatch(&module) == SJ_OK);

    build_tail_plan(CALLEE);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        plan.functions[i].source = SJ_SYMBOL_GENERATED;
        plan.functions[i].name = FIRST_FUNCTION + i;
    }
    sj_recorder_generated_values = &callee_values;
    CHECK(apply(false) == SJ_OK && report.hooked == 2);
    check_call_with_value();
    CHECK(sj_hooks_unpatch(&module) == SJ_OK);

    sj_hooks_expect_dispatch();
    build_tail_plan(CALLEE);
    CHECK(apply(false) == SJ_OK && report.hooked == 2);
    bool have_been_two = false;
    for (int i = 0; i < 100; i++) {
        check_call(true, true);
        have_been_two |= !is_one_moment();
    }
    CHECK(have_been_two);
}

static void test_without_a_tail_call_entry_the_functions_own_probe_records(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(record_without_tail_call_entry), 0);
}

static void build_import_plan(uint8_t callee)
{
    build_tail_plan(callee);
    plan.header.patch_count = 2; /* the caller's */
    plan.functions[CALLEE] = (sj_plan_function){
        .offset = 8, .size = 8, .skip = SJ_SKIP_FILTERED, .source = SJ_SYMBOL_IMPORT};
}

static void test_plans_with_wrong_callees_are_refused(void **state)
{
    (void)state;
    make_text();
    build_tail_plan(FUNCTIONS);
    assert_int_equal(apply(true), SJ_ECORRUPT);
    build_import_plan(CALLEE);
    assert_int_equal(apply(true), SJ_ECORRUPT);
    build_import_plan(CALLER);
    assert_int_equal(apply(true), SJ_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_functions_are_hooked_and_unhooked_separately),
        cmocka_unit_test(test_a_jump_of_another_tool_is_not_taken_for_a_patch),
        cmocka_unit_test(test_without_a_tail_call_entry_the_functions_own_probe_records),
        cmocka_unit_test(test_plans_with_wrong_callees_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
