/* Lines that ran are reported once each; that the rest did not run is said only if none is missing.
 * The recorder is replaced. */
#include "agent/inproc/jvm/lines.h"

#include "agent/inproc/jvm/internal.h"
#include "agent/inproc/recorder/recorder.h"
#include "tests/support/check.h"

enum { ROOM = (1 << 18) / 4 * 3, FUNCTIONS = 8, WORDS = 3 };

sj_jvm_state sj_jvm;

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

static void take_lines(const uint32_t *words, uint32_t count, bool is_last)
{
    for (uint32_t i = 0; i < count; i += WORDS) {
        const bool is_sound = words[i] < FUNCTIONS && words[i + 1] == 1 && words[i + 2] < 1 << 16;
        wrong += is_sound && seen[words[i]][words[i + 2]]++ == 0 ? 0 : 1;
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

static void lines_are_complete_until_one_found_no_room(void **state)
{
    (void)state;
    sj_jvm.options.lines = take_lines;
    run_lines(0, 10); /* of a program that is not recorded */
    is_armed = true;
    report();
    assert_int_equal(reported, 0);
    run_lines(0, ROOM - 1);
    run_lines(0, 1000); /* again */
    report();
    assert_int_equal(reported, ROOM - 1);
    assert_int_equal(wrong, 0);
    assert_true(is_complete);
    run_lines(ROOM - 1, ROOM + 5);
    report();
    assert_int_equal(reported, ROOM);
    assert_int_equal(wrong, 0);
    assert_false(is_complete);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_complete_until_one_found_no_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
