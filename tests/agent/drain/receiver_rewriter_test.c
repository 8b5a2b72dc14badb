/* Tests that values of receivers reach their entries, whichever records come in between. Exits get
 * the function of their entries. */
#include "agent/drain/receiver_rewriter.h"

#include "tests/support/check.h"

#include <stdlib.h>

enum { METHOD = 7, OTHER = 8, INHERITED = 100, RECORDS = 64 };
enum { ISA = 0x5000, OTHER_ISA = 0x6000 };

/* Returns a rewriter that knows: METHOD on ISA is INHERITED, OTHER on ISA is INHERITED + 1. */
static sj_receiver_rewriter make_receivers(void)
{
    sj_receiver_rewriter receivers = {0};
    const sj_hash_entry pairs[] = {{.key = ISA, .sub = METHOD, .first = INHERITED},
                                   {.key = ISA, .sub = OTHER, .first = INHERITED + 1}};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(sj_hash_map_put(&receivers.known, &pairs[i]), SJ_OK);
    }
    return receivers;
}

static sj_record make_record(sj_record_kind kind, uint32_t function, uint64_t first, uint64_t stack)
{
    sj_record record;
    const uint32_t tag = (uint32_t)kind << SJ_RECORD_FUNCTION_BITS | function;
    memcpy(record.bytes, &first, 8);
    if (kind == SJ_RECORD_VALUE) {
        memcpy(record.bytes + 8, &stack, 4);
    } else {
        memcpy(record.bytes + 6, &stack, 6);
    }
    memcpy(record.bytes + 12, &tag, 4);
    return record;
}

#define VALUE(function, isa, stack) make_record(SJ_RECORD_VALUE, (function), (isa), (stack))
#define ENTER(function, stack) make_record(SJ_RECORD_ENTER, (function), 1, (stack))
#define LEAVE(function, stack) make_record(SJ_RECORD_LEAVE, (function), 1, (stack))
#define DROPPED() make_record(SJ_RECORD_NOTE, SJ_NOTE_DROPPED_EVENTS, 1, 5)

/* Returns the output: a letter for each record (E, L, N) and its function. */
static const char *translate(sj_receiver_rewriter *receivers, const sj_record *records,
                             uint32_t count)
{
    static char text[RECORDS * 8];
    sj_record copy[RECORDS];
    size_t used = 0;
    memcpy(copy, records, count * sizeof(*records));
    assert_int_equal(sj_receiver_rewriter_translate(receivers, copy, &count, 0), SJ_OK);
    text[0] = '\0';
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t tag = sj_record_tag(&copy[i]);
        used +=
            (size_t)snprintf(text + used, sizeof(text) - used, "%s%c%u", i != 0 ? " " : "",
                             "ELN?"[tag >> SJ_RECORD_FUNCTION_BITS], tag & SJ_RECORD_FUNCTION_MASK);
    }
    return text;
}

#define EXPECT(receivers, expected, ...)                                                           \
    do {                                                                                           \
        const sj_record records_[] = {__VA_ARGS__};                                                \
        assert_string_equal(                                                                       \
            translate((receivers), records_, sizeof(records_) / sizeof(records_[0])), expected);   \
    } while (0)

static void test_entry_and_exit_get_the_receivers_function(void **state)
{
    sj_receiver_rewriter receivers = make_receivers();
    (void)state;
    EXPECT(&receivers, "E100 E7 L7 L100", VALUE(METHOD, ISA, 0x800), ENTER(METHOD, 0x800),
           VALUE(METHOD, OTHER_ISA, 0x700), ENTER(METHOD, 0x700), LEAVE(METHOD, 0x700),
           LEAVE(METHOD, 0x800));
    assert_true(sj_receiver_rewriter_are_idle(&receivers));
    sj_receiver_rewriter_deinit(&receivers);
}

/* The linker replaces the registry's function by this: each method is INHERITED + 2. */
sj_status __wrap_sj_registry_add_receivers(sj_registry *registry, uint64_t process,
                                           sj_receiver_pair *pairs, size_t count,
                                           uint64_t now_ticks);
sj_status __wrap_sj_registry_add_receivers(sj_registry *registry, uint64_t process,
                                           sj_receiver_pair *pairs, size_t count,
                                           uint64_t now_ticks)
{
    (void)registry;
    (void)process;
    (void)now_ticks;
    for (size_t i = 0; i < count; i++) {
        pairs[i].result = INHERITED + 2;
    }
    return SJ_OK;
}

/* INHERITED + 2 shares the hooks of METHOD, so it is unhooked with METHOD. */
static void test_a_receivers_function_is_unhooked_with_its_method(void **state)
{
    static const uint32_t method = METHOD;
    static char registry;
    sj_receiver_rewriter receivers = make_receivers();
    (void)state;
    assert_int_equal(sj_unhooked_set_new(&receivers.freed), SJ_OK);
    receivers.registry = (sj_registry *)(void *)&registry;
    EXPECT(&receivers, "E102", VALUE(METHOD, OTHER_ISA, 0x700), ENTER(METHOD, 0x700));
    sj_unhooked_set_add(receivers.freed, &method, 1, 1);
    assert_true(sj_unhooked_set_is_free(receivers.freed, INHERITED + 2, 1));
    assert_false(sj_unhooked_set_is_free(receivers.freed, INHERITED + 3, 1));
    sj_unhooked_set_release(receivers.freed);
    sj_receiver_rewriter_deinit(&receivers);
}

static void test_a_value_waits_for_the_next_records(void **state)
{
    sj_receiver_rewriter receivers = make_receivers();
    (void)state;
    EXPECT(&receivers, "", VALUE(METHOD, ISA, 0x800));
    assert_false(sj_receiver_rewriter_are_idle(&receivers));
    EXPECT(&receivers, "E100", ENTER(METHOD, 0x800));
    EXPECT(&receivers, "L100", LEAVE(METHOD, 0x800));
    sj_receiver_rewriter_deinit(&receivers);
}

static void test_a_handler_may_run_between_value_and_entry(void **state)
{
    sj_receiver_rewriter receivers = make_receivers();
    (void)state;
    EXPECT(&receivers, "E101 E8 L8 L101 E100", VALUE(METHOD, ISA, 0x800), VALUE(OTHER, ISA, 0x600),
           ENTER(OTHER, 0x600), ENTER(OTHER, 0x500), LEAVE(OTHER, 0x500), LEAVE(OTHER, 0x600),
           ENTER(METHOD, 0x800));
    sj_receiver_rewriter_deinit(&receivers);
}

static void test_values_of_a_handler_left_by_longjmp_are_dropped(void **state)
{
    sj_receiver_rewriter receivers = make_receivers();
    (void)state;
    /* The value at 0x600 belongs to a handler that longjmp left before its entry. The interrupted
     * call at 0x800 is gone, too. */
    EXPECT(&receivers, "E7", VALUE(METHOD, ISA, 0x800), VALUE(OTHER, ISA, 0x600),
           ENTER(METHOD, 0x900));
    EXPECT(&receivers, "E100 L100", ENTER(METHOD, 0x800), LEAVE(METHOD, 0x800));
    for (int i = 0; i < 3 * SJ_RECEIVER_REWRITER_WAITING; i++) {
        EXPECT(&receivers, "", VALUE(OTHER, ISA, 0x600));
    }
    EXPECT(&receivers, "E100", VALUE(METHOD, ISA, 0x800), ENTER(METHOD, 0x800));
    sj_receiver_rewriter_deinit(&receivers);
}

static void test_a_drop_discards_waiting_values(void **state)
{
    sj_receiver_rewriter receivers = make_receivers();
    (void)state;
    EXPECT(&receivers, "N2 E7", VALUE(METHOD, ISA, 0x800), DROPPED(), ENTER(METHOD, 0x800));
    sj_receiver_rewriter_deinit(&receivers);
}

static void test_calls_that_a_throw_ended_rename_no_later_exit(void **state)
{
    sj_receiver_rewriter receivers = make_receivers();
    (void)state;
    EXPECT(&receivers, "E100 E7 L7", VALUE(METHOD, ISA, 0x800), ENTER(METHOD, 0x800),
           ENTER(METHOD, 0x800), LEAVE(METHOD, 0x800));
    EXPECT(&receivers, "E100 E8 L8 L7", VALUE(METHOD, ISA, 0x800), ENTER(METHOD, 0x800),
           ENTER(OTHER, 0x800), LEAVE(OTHER, 0x800), LEAVE(METHOD, 0x800));
    sj_receiver_rewriter_deinit(&receivers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entry_and_exit_get_the_receivers_function),
        cmocka_unit_test(test_a_receivers_function_is_unhooked_with_its_method),
        cmocka_unit_test(test_a_value_waits_for_the_next_records),
        cmocka_unit_test(test_a_handler_may_run_between_value_and_entry),
        cmocka_unit_test(test_values_of_a_handler_left_by_longjmp_are_dropped),
        cmocka_unit_test(test_a_drop_discards_waiting_values),
        cmocka_unit_test(test_calls_that_a_throw_ended_rename_no_later_exit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
