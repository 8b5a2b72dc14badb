/* Each line that ran is reported once. The report is marked complete only if no line is missing.
 * This test replaces the recorder. */
#include "agent/inproc/jvm/lines.h"

#include "agent/inproc/jvm/internal.h"
#include "agent/inproc/link/conversation.h"
#include "agent/inproc/recorder/recorder.h"
#include "tests/support/check.h"

enum { CAPACITY = (1 << 18) / 4 * 3, FUNCTIONS = 8, WORDS = 3 };

static bool is_armed;
static uint32_t reported;
static uint32_t wrong;
static bool is_complete;
static uint8_t seen[FUNCTIONS][1 << 16];

bool sj_recorder_is_armed(void)
{
    return is_armed;
}

bool sj_recorder_may_call(void)
{
    return true;
}

void sj_conversation_report_lines(const uint32_t *words, uint32_t count, bool is_last)
{
    for (uint32_t i = 0; i < count; i += WORDS) {
        const bool is_valid = words[i] < FUNCTIONS && words[i + 1] == 1 && words[i + 2] < 1 << 16;
        wrong += is_valid && seen[words[i]][words[i + 2]]++ == 0 ? 0 : 1;
        reported++;
    }
    is_complete = is_last;
}

static void report(void)
{
    reported = wrong = 0;
    is_complete = false;
    memset(seen, 0, sizeof(seen));
    sj_jvm_report_lines();
}

static void run_lines(uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        sj_jvm_line(NULL, NULL, (jint)(i & UINT16_MAX), (jint)(i >> 16));
    }
}

static void lines_are_complete_until_the_table_is_full(void **state)
{
    (void)state;
    run_lines(0, 10); /* The program is not recorded yet. */
    is_armed = true;
    report();
    assert_int_equal(reported, 0);
    run_lines(0, CAPACITY - 1);
    run_lines(0, 1000); /* These lines run again. */
    report();
    assert_int_equal(reported, CAPACITY - 1);
    assert_int_equal(wrong, 0);
    assert_true(is_complete);
    run_lines(CAPACITY - 1, CAPACITY + 5);
    report();
    assert_int_equal(reported, CAPACITY);
    assert_int_equal(wrong, 0);
    assert_false(is_complete);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_complete_until_the_table_is_full)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
