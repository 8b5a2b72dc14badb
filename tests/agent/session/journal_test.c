/* Tests the journals of recorders that were killed at each point of an append, and damaged
 * journals. */
#include "agent/session/journal.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const sj_session_id session = {.bytes = {1, 2, 3}};

static int set_up(void **state)
{
    char *folder = strdup("/tmp/journal_test.XXXXXX");
    assert_non_null(mkdtemp(folder));
    *state = folder;
    return 0;
}

static int tear_down(void **state)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", (char *)*state);
    free(*state);
    return system(command);
}

static void damage(const char *folder, off_t at, const void *bytes, size_t size)
{
    char path[96];
    snprintf(path, sizeof(path), "%s/journal", folder);
    const int file = open(path, O_WRONLY);
    assert_int_equal(pwrite(file, bytes, size, at), size);
    close(file);
}

static sj_journal create(const char *folder)
{
    sj_journal journal;
    sj_error error = {0};
    assert_int_equal(sj_journal_create(folder, &session, &journal, &error), SJ_OK);
    return journal;
}

static sj_status open_again(const char *folder, sj_journal *journal)
{
    sj_error error = {0};
    const sj_status status = sj_journal_open(folder, journal, &error);
    assert_true(status == SJ_OK || error.text[0] != '\0');
    return status;
}

/* The spool's length shows whether the frame that was being appended is there. */
static void sums_hold_whenever_the_recorder_was_killed(void **state)
{
    const sj_journal_sums first = {.blocks = 1, .block_calls = 10};
    const sj_journal_sums second = {.blocks = 2, .block_calls = 30};
    sj_journal journal = create(*state);
    sj_journal next;
    assert_int_equal(sj_journal_recover(&journal, 0).blocks, 0);
    sj_journal_begin(&journal, &first, 0);
    sj_journal_commit(&journal, true);
    assert_int_equal(sj_journal_recover(&journal, 100).block_calls, 10);
    sj_journal_begin(&journal, &second, 100); /* killed here: the frame is not in the spool */
    assert_int_equal(open_again(*state, &next), SJ_OK);
    assert_memory_equal(&next.data->session, &session, sizeof(session));
    assert_int_equal(sj_journal_recover(&next, 100).block_calls, 10);
    sj_journal_begin(&next, &second, 100); /* or killed here: the frame is in the spool */
    sj_journal_close(&next);
    assert_int_equal(open_again(*state, &next), SJ_OK);
    assert_int_equal(sj_journal_recover(&next, 150).block_calls, 30);
    assert_int_equal(sj_journal_recover(&next, 150).block_calls, 30); /* the decision is final */
    sj_journal_close(&next);
    sj_journal_close(&journal);
}

static void processes_beyond_the_capacity_are_left_out(void **state)
{
    const sj_journal_process process = {.number = 7, .how = "forked"};
    sj_journal journal = create(*state);
    for (int i = 0; i < SJ_JOURNAL_PROCESSES + 5; ++i) {
        sj_journal_add_process(&journal, &process);
    }
    assert_int_equal(journal.data->process_count, SJ_JOURNAL_PROCESSES);
    assert_int_equal(journal.data->processes[SJ_JOURNAL_PROCESSES - 1].number, 7);
    sj_journal_close(&journal);
}

static void damaged_journals_are_refused(void **state)
{
    const uint32_t many = SJ_JOURNAL_PROCESSES + 1;
    const uint32_t odd = 4;
    const uint32_t version = SJ_JOURNAL_VERSION + 1;
    const uint64_t magic = 1;
    sj_journal next;
    sj_journal journal = create(*state);
    sj_journal_close(&journal);
    damage(*state, offsetof(sj_journal_data, version), &version, sizeof(version));
    assert_int_equal(open_again(*state, &next), SJ_EVERSION);
    damage(*state, offsetof(sj_journal_data, process_count), &many, sizeof(many));
    assert_int_equal(open_again(*state, &next), SJ_ECORRUPT);
    damage(*state, offsetof(sj_journal_data, process_count), &magic, sizeof(many));
    damage(*state, offsetof(sj_journal_data, state), &odd, sizeof(odd));
    assert_int_equal(open_again(*state, &next), SJ_ECORRUPT);
    damage(*state, offsetof(sj_journal_data, state), &magic, sizeof(odd));
    damage(*state, offsetof(sj_journal_data, magic), &magic, sizeof(magic));
    assert_int_equal(open_again(*state, &next), SJ_ECORRUPT);
}

static void cut_missing_and_linked_journals_are_refused(void **state)
{
    char path[96];
    char target[96];
    sj_journal next;
    assert_int_equal(open_again(*state, &next), SJ_ENOTFOUND);
    sj_journal journal = create(*state);
    sj_journal_close(&journal);
    snprintf(path, sizeof(path), "%s/journal", (char *)*state);
    assert_int_equal(truncate(path, sizeof(sj_journal_data) - 1), 0);
    assert_int_equal(open_again(*state, &next), SJ_ECORRUPT);
    snprintf(target, sizeof(target), "%s/elsewhere", (char *)*state);
    assert_int_equal(rename(path, target), 0);
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(open_again(*state, &next), SJ_EIO);
}

/* The recorder was killed before it reserved the journal, or before it wrote the first fields. */
static void unfinished_journals_are_as_if_missing(void **state)
{
    const uint64_t nothing = 0;
    char path[96];
    sj_journal next;
    sj_journal journal = create(*state);
    sj_journal_close(&journal);
    damage(*state, offsetof(sj_journal_data, magic), &nothing, sizeof(nothing));
    assert_int_equal(open_again(*state, &next), SJ_ENOTFOUND);
    snprintf(path, sizeof(path), "%s/journal", (char *)*state);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(open_again(*state, &next), SJ_ENOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sums_hold_whenever_the_recorder_was_killed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(processes_beyond_the_capacity_are_left_out, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(damaged_journals_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unfinished_journals_are_as_if_missing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cut_missing_and_linked_journals_are_refused, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
