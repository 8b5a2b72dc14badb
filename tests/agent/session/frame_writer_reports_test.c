/* Tests the frame writer's reports of monitors: they are numbered across recorders, and refused if
 * the spool is full. */
#include "agent/session/frame_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct session_folder {
    char path[64];
    sj_journal journal;
    sj_spool *spool;
    sj_frame_writer *writer;
} session_folder;

static const sj_session_id session = {.bytes = {7}};

static void open_writer(session_folder *folder, uint64_t budget_bytes)
{
    sj_error error = {0};
    char directory[96];
    snprintf(directory, sizeof(directory), "%s/spool", folder->path);
    const sj_spool_options options = {.directory = directory, .budget_bytes = budget_bytes};
    assert_int_equal(sj_spool_open(&options, &folder->spool, &error), SJ_OK);
    const sj_frame_writer_options writer = {
        .session = session, .spool = folder->spool, .journal = &folder->journal};
    assert_int_equal(sj_frame_writer_new(&writer, &folder->writer), SJ_OK);
}

static void close_writer(session_folder *folder)
{
    sj_frame_writer_free(folder->writer);
    sj_spool_close(folder->spool);
}

static int set_up(void **state)
{
    session_folder *folder = calloc(1, sizeof(*folder));
    sj_error error = {0};
    assert_non_null(folder);
    snprintf(folder->path, sizeof(folder->path), "/tmp/frame_writer_test.XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    assert_int_equal(sj_journal_create(folder->path, &session, &folder->journal, &error), SJ_OK);
    *state = folder;
    return 0;
}

static int tear_down(void **state)
{
    session_folder *folder = *state;
    char command[128];
    sj_journal_close(&folder->journal);
    snprintf(command, sizeof(command), "rm -rf %s", folder->path);
    free(folder);
    return system(command);
}

static sj_status report(session_folder *folder, const char *kind, const char *json, size_t bytes)
{
    const sj_report one = {.ticks = 5,
                           .process = 1,
                           .thread = 2,
                           .monitor = "heap",
                           .kind = kind,
                           .json = json,
                           .json_bytes = bytes};
    return sj_frame_writer_report(folder->writer, &one);
}

static void expect_next(session_folder *folder, uint64_t number, const char *kind, const char *json)
{
    sj_slice bytes;
    sj_frame_view view;
    uint64_t position = 0;
    assert_int_equal(sj_spool_next(folder->spool, &bytes, &position), SJ_OK);
    assert_int_equal(sj_frame_read(bytes, &view), SJ_OK);
    assert_int_equal(view.type, SJ_FRAME_REPORT);
    Sojourn__Report *message = sojourn__report__unpack(NULL, view.header.size, view.header.data);
    assert_non_null(message);
    assert_int_equal(message->report, number);
    assert_int_equal(message->ticks, 5);
    assert_int_equal(message->process, 1);
    assert_int_equal(message->thread, 2);
    assert_string_equal(message->monitor, "heap");
    assert_string_equal(message->kind, kind);
    assert_int_equal(message->session_id.len, SJ_SESSION_ID_BYTES);
    assert_memory_equal(message->session_id.data, session.bytes, SJ_SESSION_ID_BYTES);
    sojourn__report__free_unpacked(message, NULL);
    assert_int_equal(view.payload.size, strlen(json));
    assert_memory_equal(view.payload.data, json, view.payload.size);
}

static void reports_keep_their_numbers_across_recorders(void **state)
{
    session_folder *folder = *state;
    open_writer(folder, 0);
    assert_int_equal(report(folder, "double_free", "{\"bytes\":1}", 11), SJ_OK);
    close_writer(folder);
    open_writer(folder, 0); /* another recorder that finishes the session */
    assert_int_equal(report(folder, "leak", "{}", 2), SJ_OK);
    expect_next(folder, 1, "double_free", "{\"bytes\":1}");
    expect_next(folder, 2, "leak", "{}");
    close_writer(folder);
}

static void reports_that_cannot_be_stored_are_refused_and_counted(void **state)
{
    session_folder *folder = *state;
    sj_frame_writer_counters counters;
    char long_name[SJ_REPORT_NAME_BYTES + 2];
    char *big = calloc(1, SJ_REPORT_MAX_BYTES + 1);
    assert_non_null(big);
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    open_writer(folder, 4096);
    assert_int_equal(report(folder, "", "{}", 2), SJ_EINVAL);
    assert_int_equal(report(folder, long_name, "{}", 2), SJ_EINVAL);
    assert_int_equal(report(folder, "x", big, SJ_REPORT_MAX_BYTES + 1), SJ_ELIMIT);
    assert_int_equal(report(folder, "x", big, 8192), SJ_EFULL);
    assert_int_equal(report(folder, "x", "{}", 2), SJ_OK);
    sj_frame_writer_get_counters(folder->writer, &counters);
    assert_int_equal(counters.refused_reports, 1);
    assert_int_equal(counters.waiting_frames, 0);
    expect_next(folder, 2, "x", "{}"); /* the missing number shows the loss */
    close_writer(folder);
    free(big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reports_keep_their_numbers_across_recorders, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(reports_that_cannot_be_stored_are_refused_and_counted,
                                        set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
