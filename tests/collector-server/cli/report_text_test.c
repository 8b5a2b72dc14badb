/* Tests the messages about a wait while a recording detaches from its processes, and about
 * losses. */
#include "collector-server/cli/report_progress.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

/* Returns what is written to standard error. The caller frees it. */
static char *say(sj_report_text *text, sj_recording_phase phase)
{
    const sj_recording_progress progress = {.phase = phase};
    char *said = NULL;
    size_t bytes = 0;
    FILE *before = stderr;
    stderr = open_memstream(&said, &bytes);
    assert_non_null(stderr);
    sj_report_progress(text, &progress);
    assert_int_equal(fclose(stderr), 0);
    stderr = before;
    return said;
}

static void assert_said(sj_report_text *text, const char *expected)
{
    char *said = say(text, SJ_PHASE_WAITING_FOR_BUDGET);
    if (expected == NULL) {
        assert_string_equal(said, "");
    } else {
        assert_non_null(strstr(said, expected));
    }
    free(said);
}

static void a_wait_for_the_budget_is_reported_once(void **state)
{
    sj_report_text text = {0};
    (void)state;
    assert_said(&text, NULL); /* the wait is short so far */
    assert_true(text.waiting_for_budget_ns > 1);
    text.waiting_for_budget_ns = 1; /* as if the wait had begun when the machine started */
    assert_said(&text, "waiting for the JVM");
    assert_said(&text, NULL);
}

static void quiet_suppresses_the_wait_for_the_budget(void **state)
{
    sj_report_text text = {.quiet = true, .waiting_for_budget_ns = 1};
    (void)state;
    assert_said(&text, NULL);
}

/* Returns the text about a summary. The caller frees it. */
static char *summarize(const sj_recording_summary *summary)
{
    sj_report_text text = {.quiet = true, .target = "there"};
    char *said = NULL;
    size_t bytes = 0;
    FILE *before = stderr;
    stderr = open_memstream(&said, &bytes);
    assert_non_null(stderr);
    sj_report_text_summary(&text, summary, 0);
    assert_int_equal(fclose(stderr), 0);
    stderr = before;
    return said;
}

static char *summarize_drops(uint64_t dropped, uint64_t of_handlers)
{
    const sj_recording_summary summary = {
        .how = "completed",
        .delivered = true,
        .answered = true,
        .agent_reported = true,
        .lost_events = dropped,
        .drain = {.dropped_events = dropped, .handler_events = of_handlers}};
    return summarize(&summary);
}

/* Frames that were refused for good cannot be sent later. The text promises to send only the
 * others. */
static void refused_frames_are_distinguished_from_waiting_frames(void **state)
{
    (void)state;
    sj_recording_summary summary = {.how = "completed",
                                    .answered = true,
                                    .agent_reported = true,
                                    .set_aside = "2 frames refused",
                                    .spool_directory = "/spool"};
    char *said = summarize(&summary);
    assert_non_null(strstr(said, "there does not have 2 frames refused"));
    assert_null(strstr(said, "sojourn flush"));
    free(said);
    summary.answered = false;
    said = summarize(&summary);
    assert_non_null(strstr(said, "there does not have 2 frames refused"));
    assert_non_null(strstr(said, "the rest is kept in /spool: run \"sojourn flush\" later"));
    free(said);
}

static void the_buffer_is_not_blamed_for_what_handlers_drop(void **state)
{
    (void)state;
    char *said = summarize_drops(10, 10);
    assert_non_null(strstr(said, "10 events of signal handlers"));
    assert_null(strstr(said, "--block-ms"));
    free(said);
    said = summarize_drops(10, 4);
    assert_non_null(strstr(said, "4 events of signal handlers"));
    assert_non_null(strstr(said, "6 events found a full buffer; a longer --block-ms"));
    free(said);
}

static void leftovers_in_the_program_are_reported_despite_quiet(void **state)
{
    (void)state;
    sj_recording_summary summary = {
        .how = "completed", .delivered = true, .answered = true, .agent_reported = true};
    char *said = summarize(&summary);
    assert_string_equal(said, "");
    free(said);
    summary.detach.left_bytes = 397312;
    said = summarize(&summary);
    assert_non_null(strstr(said, "sojourn: left over in the program: 388 KiB"));
    assert_non_null(strstr(said, "gone at the next attach or detach"));
    free(said);
    summary.detach.stays = true;
    said = summarize(&summary);
    assert_non_null(strstr(said, "stay until the process ends"));
    free(said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_for_the_budget_is_reported_once),
        cmocka_unit_test(quiet_suppresses_the_wait_for_the_budget),
        cmocka_unit_test(the_buffer_is_not_blamed_for_what_handlers_drop),
        cmocka_unit_test(refused_frames_are_distinguished_from_waiting_frames),
        cmocka_unit_test(leftovers_in_the_program_are_reported_despite_quiet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
