/* Entries get the name that their function had at that time. Exits and values get the name of their
 * entry. */
#include "agent/drain/renamed_functions.h"

#include "tests/support/check.h"

enum { PROCESS = 3, METHOD = 7, REPLACED = 100, RECORDS = 64 };

/* The registry's list: METHOD is named REPLACED from tick 10 on, and METHOD again from tick 20 on.
 * The change of another process does not apply. */
static const sj_renamed_function renamed_list[] = {
    {.process = PROCESS, .ticks = 10, .function = METHOD, .named = REPLACED},
    {.process = PROCESS + 1, .ticks = 11, .function = METHOD, .named = REPLACED + 1},
    {.process = PROCESS, .ticks = 20, .function = METHOD, .named = METHOD}};
static size_t known_count;

/* The linker replaces the registry's function by this. */
size_t __wrap_sj_registry_renamed_count(const sj_registry *registry);
size_t __wrap_sj_registry_renamed_count(const sj_registry *registry)
{
    (void)registry;
    return known_count;
}

size_t __wrap_sj_registry_list_renamed(sj_registry *registry, size_t first,
                                       sj_renamed_function *list, size_t capacity);
size_t __wrap_sj_registry_list_renamed(sj_registry *registry, size_t first,
                                       sj_renamed_function *list, size_t capacity)
{
    (void)registry;
    (void)capacity;
    memcpy(list, renamed_list + first, (known_count - first) * sizeof(*list));
    return known_count - first;
}

static sj_record make_record(sj_record_kind kind, uint32_t function, uint64_t first, uint64_t stack)
{
    sj_record record;
    const uint32_t tag = sj_record_make_tag(kind, function);
    memcpy(record.bytes, &first, 8);
    if (kind == SJ_RECORD_VALUE) {
        memcpy(record.bytes + 8, &stack, 4);
    } else {
        memcpy(record.bytes + 6, &stack, 6);
    }
    memcpy(record.bytes + 12, &tag, 4);
    return record;
}

#define VALUE(function, stack) make_record(SJ_RECORD_VALUE, (function), 5, (stack))
#define ENTER(function, ticks, stack) make_record(SJ_RECORD_ENTER, (function), (ticks), (stack))
#define LEAVE(function, ticks, stack) make_record(SJ_RECORD_LEAVE, (function), (ticks), (stack))

static sj_renamed_functions make_renamed(void)
{
    static char registry;
    return (sj_renamed_functions){.registry = (sj_registry *)(void *)&registry, .process = PROCESS};
}

/* Returns the output: a letter for each record (E, L, N, V) and its function. */
static const char *translate(sj_renamed_functions *renamed, const sj_record *records,
                             uint32_t count)
{
    static char text[RECORDS * 8];
    sj_record copy[RECORDS];
    size_t used = 0;
    memcpy(copy, records, count * sizeof(*records));
    assert_int_equal(sj_renamed_functions_follow(renamed), SJ_OK);
    assert_int_equal(sj_renamed_functions_translate(renamed, copy, count), SJ_OK);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t tag = sj_record_tag(&copy[i]);
        used +=
            (size_t)snprintf(text + used, sizeof(text) - used, "%s%c%u", i != 0 ? " " : "",
                             "ELNV"[tag >> SJ_RECORD_FUNCTION_BITS], tag & SJ_RECORD_FUNCTION_MASK);
    }
    return text;
}

#define EXPECT(renamed, expected, ...)                                                             \
    do {                                                                                           \
        const sj_record records_[] = {__VA_ARGS__};                                                \
        assert_string_equal(                                                                       \
            translate((renamed), records_, sizeof(records_) / sizeof(records_[0])), expected);     \
    } while (0)

static void test_calls_keep_the_name_of_their_entry(void **state)
{
    sj_renamed_functions renamed = make_renamed();
    (void)state;
    known_count = 3;
    EXPECT(&renamed, "E7 E100 E7 L7 L100 L7", ENTER(METHOD, 9, 0x800), ENTER(METHOD, 10, 0x700),
           ENTER(METHOD, 20, 0x600), LEAVE(METHOD, 21, 0x600), LEAVE(METHOD, 22, 0x700),
           LEAVE(METHOD, 23, 0x800));
    sj_renamed_functions_deinit(&renamed);
}

static void test_a_rename_applies_from_when_it_becomes_known(void **state)
{
    sj_renamed_functions renamed = make_renamed();
    (void)state;
    known_count = 0;
    EXPECT(&renamed, "E7", ENTER(METHOD, 9, 0x800));
    known_count = 1;
    EXPECT(&renamed, "E100 L100 L7 E8", ENTER(METHOD, 12, 0x700), LEAVE(METHOD, 13, 0x700),
           LEAVE(METHOD, 14, 0x800), ENTER(METHOD + 1, 15, 0x800));
    sj_renamed_functions_deinit(&renamed);
}

static void test_values_are_renamed_with_their_call(void **state)
{
    sj_renamed_functions renamed = make_renamed();
    (void)state;
    known_count = 3;
    EXPECT(&renamed, "V7 E7 V100 V100 E100 V7 L7 V100 L100 V7", VALUE(METHOD, 0x800),
           ENTER(METHOD, 9, 0x800), VALUE(METHOD, 0x700), VALUE(METHOD, 0x700),
           ENTER(METHOD, 11, 0x700), VALUE(METHOD, 0x800), LEAVE(METHOD, 12, 0x800),
           VALUE(METHOD, 0x700), LEAVE(METHOD, 13, 0x700), VALUE(METHOD, 0x700));
    sj_renamed_functions_deinit(&renamed);
}

static void test_an_unwound_call_renames_no_later_exit(void **state)
{
    sj_renamed_functions renamed = make_renamed();
    (void)state;
    known_count = 3;
    EXPECT(&renamed, "E100 E7 L7", ENTER(METHOD, 11, 0x700), ENTER(METHOD, 21, 0x700),
           LEAVE(METHOD, 22, 0x700));
    sj_renamed_functions_deinit(&renamed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_keep_the_name_of_their_entry),
        cmocka_unit_test(test_a_rename_applies_from_when_it_becomes_known),
        cmocka_unit_test(test_values_are_renamed_with_their_call),
        cmocka_unit_test(test_an_unwound_call_renames_no_later_exit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
