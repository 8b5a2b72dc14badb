/* Calls that an ended session sent and the store lacks are lost, with gaps where they are
 * missing. */
#include "collector-server/store/store_internal.h"
#include "collector-server/store/verify.h"
#include "tests/collector-server/store/lab_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCKS = 5, EVENTS = 3000 };
#define NS_A_S UINT64_C(1000000000)

static const char account_sql[] =
    "SELECT sent_calls = stored_calls + lost_calls, lost_calls = missing_calls, lost_calls ="
    " (SELECT coalesce(sum(calls), 0) FROM gaps), lost_events = (SELECT coalesce(sum(events), 0)"
    " FROM gaps), (SELECT group_concat(reason || (stream_id IS NOT NULL)) FROM gaps) FROM sessions";

/* Blocks of a session, copied, because the maker keeps only the latest. */
typedef struct sent_blocks {
    sj_slice blocks[BLOCKS];
    uint64_t calls[BLOCKS];
} sent_blocks;

static void make_blocks(lab_file *lab, sent_blocks *sent)
{
    for (int i = 0; i < BLOCKS; ++i) {
        const uint64_t before = lab->maker.next_call;
        const sj_slice made =
            frame_maker_block(&lab->maker, EVENTS, i == BLOCKS - 1 ? SJ_BLOCK_LAST : 0);
        uint8_t *bytes = malloc(made.size);
        assert_non_null(bytes);
        memcpy(bytes, made.data, made.size);
        sent->blocks[i] = (sj_slice){.data = bytes, .size = made.size};
        sent->calls[i] = lab->maker.next_call - before;
    }
}

static void free_blocks(sent_blocks *sent)
{
    for (int i = 0; i < BLOCKS; ++i) {
        free((void *)(uintptr_t)sent->blocks[i].data);
    }
}

/* Stores the blocks except those whose bit is set in `left_out`, and the session's end. */
static void send(lab_file *lab, sent_blocks *sent, unsigned left_out)
{
    lab_file_put_metadata(lab);
    make_blocks(lab, sent);
    lab_file_begin(lab);
    for (int i = 0; i < BLOCKS; ++i) {
        if ((left_out & 1u << i) == 0) {
            lab_file_put(lab, sent->blocks[i]);
        }
    }
    lab_file_commit(lab);
    lab_file_expect(lab,
                    "SELECT lost_calls = (SELECT coalesce(sum(calls), 0) FROM gaps), state"
                    " FROM sessions",
                    "1|recording|\n");
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_end(&lab->maker));
    lab_file_commit(lab);
}

static void expect_missing(const lab_file *lab, uint64_t calls)
{
    char reply[64];
    snprintf(reply, sizeof(reply), "%llu|\n", (unsigned long long)calls);
    lab_file_expect(lab, "SELECT missing_calls FROM sessions", reply);
}

static unsigned count_findings(lab_file *lab)
{
    sj_verified verified;
    const sj_verify_options options = {.check_only = true};
    assert_int_equal(sj_store_verify(lab->store, &options, &verified, &lab->error), SJ_OK);
    return (unsigned)(verified.bad_blocks + verified.other);
}

static void a_whole_session_misses_nothing(void **state)
{
    lab_file *lab = *state;
    sent_blocks sent;
    send(lab, &sent, 0);
    lab_file_expect(lab, account_sql, "1|1|1|1||\n");
    expect_missing(lab, 0);
    assert_int_equal(count_findings(lab), 0);
    free_blocks(&sent);
}

static void a_hole_is_a_gap_until_its_block_comes(void **state)
{
    lab_file *lab = *state;
    sent_blocks sent;
    send(lab, &sent, 1u << 2);
    lab_file_expect(lab, account_sql, "1|1|1|1|not_stored1|\n");
    expect_missing(lab, sent.calls[2]);
    lab_file_expect(lab,
                    "SELECT (SELECT events FROM gaps), (SELECT start_ns FROM gaps) > 0,"
                    " (SELECT end_ns FROM gaps) < (SELECT last_leave_ns FROM streams)",
                    "3000|1|1|\n");
    assert_int_equal(count_findings(lab), 1);
    assert_int_equal(sj_store_rebuild(lab->store, 1, &lab->error), SJ_OK);
    lab_file_expect(lab, account_sql, "1|1|1|1|not_stored1|\n");
    lab_file_begin(lab);
    lab_file_put(lab, sent.blocks[2]);
    lab_file_commit(lab);
    lab_file_expect(lab, account_sql, "1|1|1|1||\n");
    expect_missing(lab, 0);
    assert_int_equal(count_findings(lab), 0);
    free_blocks(&sent);
}

static void missing_blocks_are_counted_by_their_position(void **state)
{
    lab_file *lab = *state;
    sent_blocks sent;
    /* leaves out the first, a middle one and the last */
    send(lab, &sent, 1u << 0 | 1u << 2 | 1u << 4);
    lab_file_expect(lab, account_sql, "1|1|1|1|not_stored1,not_stored1,not_stored0|\n");
    expect_missing(lab, sent.calls[0] + sent.calls[2] + sent.calls[4]);
    free_blocks(&sent);
}

static void calls_that_the_device_counted_as_lost_are_not_missing(void **state)
{
    lab_file *lab = *state;
    sent_blocks sent;
    lab_file_put_metadata(lab);
    make_blocks(lab, &sent);
    lab_file_begin(lab);
    for (int i = 0; i < BLOCKS; ++i) {
        if (i != 1) {
            lab_file_put(lab, sent.blocks[i]);
        }
    }
    lab_file_put(lab, frame_maker_gap(&lab->maker, 1, sent.calls[1] - 5));
    lab_file_put(lab, frame_maker_end(&lab->maker));
    lab_file_commit(lab);
    expect_missing(lab, 5);
    lab_file_expect(lab,
                    "SELECT sent_calls = stored_calls + lost_calls, lost_calls = (SELECT sum(calls)"
                    " FROM gaps), (SELECT calls FROM gaps WHERE reason = 'not_stored') FROM"
                    " sessions",
                    "1|1|5|\n");
    free_blocks(&sent);
}

static void losses_within_the_blocks_are_counted_once(void **state)
{
    lab_file *lab = *state;
    sent_blocks sent;
    lab->maker.lost_calls = 7;
    send(lab, &sent, 1u << 2);
    expect_missing(lab, sent.calls[2]);
    /* Counts the gaps of the four blocks that came, and the hole with the losses that its block had
     * reported. */
    lab_file_expect(lab,
                    "SELECT reason, count(*), sum(events), sum(calls) = iif(reason = 'ring_full',"
                    " 28, (SELECT missing_calls FROM sessions)) FROM gaps GROUP BY reason",
                    "not_stored|1|3014|1|\nring_full|4|56|1|\n");
    lab_file_expect(lab,
                    "SELECT missing_events, lost_events, lost_events = (SELECT sum(events) FROM"
                    " gaps), sent_calls = stored_calls + lost_calls FROM sessions",
                    "3014|3070|1|1|\n");
    free_blocks(&sent);
}

/* Time counts from the last frame, by the collector's clock. The holes then become lost calls. */
static void a_silent_session_ends_and_goes_on_when_its_device_comes_back(void **state)
{
    lab_file *lab = *state;
    sent_blocks sent;
    const sj_store_options options = {
        .path = lab->path, .aggregates_delay_ms = 1000, .lost_after_s = 3600};
    sj_store_close(lab->store);
    assert_int_equal(sj_store_open(&options, &lab->store, &lab->error), SJ_OK);
    lab_file_put_metadata(lab);
    make_blocks(lab, &sent);
    lab_file_begin(lab);
    for (int i = 0; i < BLOCKS; ++i) {
        if (i != 1) {
            lab_file_put(lab, sent.blocks[i]);
        }
    }
    lab_file_commit(lab);
    lab_file_run(lab, "UPDATE sessions SET started_realtime_ns = 1");
    lab->store->next_silence_check_ns = 0;
    sj_store_recover(lab->store);
    lab_file_expect(lab, "SELECT state FROM sessions", "recording|\n");
    sj_store_close(lab->store);
    lab_file_run(lab,
                 "UPDATE sessions SET received_realtime_ns = received_realtime_ns - 3700000000000");
    assert_int_equal(sj_store_open(&options, &lab->store, &lab->error), SJ_OK);
    sj_store_recover(lab->store); /* the store itself may have been away */
    lab_file_expect(lab, "SELECT state FROM sessions", "recording|\n");
    assert_in_range(lab->store->next_silence_check_ns, sj_store_now_ns() + 3500 * NS_A_S,
                    sj_store_now_ns() + 3600 * NS_A_S);
    lab->store->next_silence_check_ns = 0; /* an hour later */
    sj_store_recover(lab->store);
    lab_file_expect(lab,
                    "SELECT state, sent_calls, (SELECT count(*) FROM gaps WHERE reason ="
                    " 'not_stored') FROM sessions",
                    "lost contact||1|\n");
    expect_missing(lab, sent.calls[1]);
    lab_file_begin(lab);
    lab_file_put(lab, sent.blocks[1]);
    lab_file_commit(lab);
    lab_file_expect(lab,
                    "SELECT state, received_realtime_ns > unixepoch('now', '-60 seconds') *"
                    " 1000000000 FROM sessions",
                    "recording|1|\n");
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_end(&lab->maker));
    lab_file_commit(lab);
    lab_file_expect(lab, account_sql, "1|1|1|1||\n");
    lab_file_expect(lab, "SELECT state FROM sessions", "completed|\n");
    free_blocks(&sent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_whole_session_misses_nothing, lab_file_set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(a_hole_is_a_gap_until_its_block_comes, lab_file_set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(missing_blocks_are_counted_by_their_position,
                                        lab_file_set_up, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(
            a_silent_session_ends_and_goes_on_when_its_device_comes_back, lab_file_set_up,
            lab_file_tear_down),
        cmocka_unit_test_setup_teardown(calls_that_the_device_counted_as_lost_are_not_missing,
                                        lab_file_set_up, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(losses_within_the_blocks_are_counted_once, lab_file_set_up,
                                        lab_file_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
