/* Tests which sender may write what, and what counts as the same block. */
#include "collector-server/store/sender.h"
#include "tests/collector-server/store/lab_file.h"
#include "tests/support/check.h"

/* Returns the device that a frame maker names. */
static sj_sender sender_of(const frame_maker *maker, uint8_t secret)
{
    sj_sender sender = {.is_peer = true, .device = {0xd0, maker->session_tag}};
    memset(sender.secret, secret, sizeof(sender.secret));
    return sender;
}

static sj_status apply_as(lab_file *lab, const sj_sender *sender, sj_slice frame, bool *duplicate)
{
    sj_frame_view view;
    assert_int_equal(sj_frame_read(frame, &view), SJ_OK);
    return sj_store_apply(lab->store, &view, sender, duplicate, &lab->error);
}

static void put_metadata_as(lab_file *lab, const sj_sender *sender)
{
    bool duplicate;
    lab_file_begin(lab);
    assert_int_equal(apply_as(lab, sender, frame_maker_hello(&lab->maker), &duplicate), SJ_OK);
    assert_int_equal(apply_as(lab, sender, frame_maker_session(&lab->maker), &duplicate), SJ_OK);
    assert_int_equal(apply_as(lab, sender, frame_maker_module(&lab->maker), &duplicate), SJ_OK);
    assert_int_equal(apply_as(lab, sender, frame_maker_thread(&lab->maker), &duplicate), SJ_OK);
    lab_file_commit(lab);
}

/* Sends every kind of frame for the lab's session from another sender. None changes anything. */
static void check_refused(lab_file *lab, const sj_sender *thief, int already)
{
    char before[4096];
    char refusals[32];
    bool duplicate;
    char *state = lab_file_ask(lab, "SELECT name, state, lost_calls, stored_blocks,"
                                    " (SELECT count(*) FROM marks), (SELECT count(*) FROM gaps),"
                                    " (SELECT count(*) FROM threads) FROM sessions");
    snprintf(before, sizeof(before), "%s", state);
    sqlite3_free(state);
    lab_file_begin(lab);
    assert_int_equal(apply_as(lab, thief, frame_maker_session(&lab->maker), &duplicate), SJ_EINVAL);
    assert_int_equal(apply_as(lab, thief, frame_maker_end(&lab->maker), &duplicate), SJ_EINVAL);
    assert_int_equal(apply_as(lab, thief, frame_maker_gap(&lab->maker, 7, 1000000), &duplicate),
                     SJ_EINVAL);
    assert_int_equal(apply_as(lab, thief, frame_maker_mark(&lab->maker, 3), &duplicate), SJ_EINVAL);
    assert_int_equal(apply_as(lab, thief, frame_maker_thread(&lab->maker), &duplicate), SJ_EINVAL);
    assert_int_equal(apply_as(lab, thief, frame_maker_module(&lab->maker), &duplicate), SJ_EINVAL);
    frame_maker copy = lab->maker;
    assert_int_equal(apply_as(lab, thief, frame_maker_block(&lab->maker, 100, 0), &duplicate),
                     SJ_EINVAL);
    copy.block = lab->maker.block;
    copy.block_capacity = lab->maker.block_capacity;
    copy.frame = lab->maker.frame;
    copy.frame_capacity = lab->maker.frame_capacity;
    lab->maker = copy; /* as if the frame had not been made */
    lab_file_commit(lab);
    lab_file_expect(lab,
                    "SELECT name, state, lost_calls, stored_blocks, (SELECT count(*) FROM marks),"
                    " (SELECT count(*) FROM gaps), (SELECT count(*) FROM threads) FROM sessions",
                    before);
    snprintf(refusals, sizeof(refusals), "%d|\n", already + 7 - (thief->device[1] != 1));
    lab_file_expect(lab, "SELECT sum(frames) FROM refused_frames", refusals);
}

static void only_the_own_device_sends_for_a_session(void **state)
{
    lab_file *lab = *state;
    bool duplicate;
    sj_store_counters counters;
    sj_sender owner = sender_of(&lab->maker, 0);
    owner.has_token = true;
    put_metadata_as(lab, &owner);
    sj_sender thief = owner;
    thief.device[1] = 99;
    check_refused(lab, &thief, 0);
    lab_file_begin(lab);
    assert_int_equal(apply_as(lab, &owner, frame_maker_block(&lab->maker, 100, 0), &duplicate),
                     SJ_OK);
    lab_file_commit(lab);
    sj_store_get_counters(lab->store, &counters);
    assert_int_equal(counters.foreign, 6);
    lab_file_expect(lab, "SELECT hex(substr(sender_uuid, 1, 2)) FROM refused_frames", "D063|\n");
}

static void a_session_without_tokens_is_protected_by_its_secret(void **state)
{
    lab_file *lab = *state;
    bool duplicate;
    const sj_sender owner = sender_of(&lab->maker, 5);
    put_metadata_as(lab, &owner);
    const sj_sender guess = sender_of(&lab->maker, 6);
    const sj_sender none = sender_of(&lab->maker, 0);
    check_refused(lab, &guess, 0);
    check_refused(lab, &none, 7);
    sj_sender enrolled = none; /* the device itself, with its token, through another recorder */
    enrolled.has_token = true;
    lab_file_begin(lab);
    assert_int_equal(apply_as(lab, &enrolled, frame_maker_mark(&lab->maker, 1), &duplicate), SJ_OK);
    assert_int_equal(apply_as(lab, &owner, frame_maker_block(&lab->maker, 100, 0), &duplicate),
                     SJ_OK);
    lab_file_commit(lab);
}

static void a_session_without_secret_accepts_its_device(void **state)
{
    lab_file *lab = *state;
    bool duplicate;
    const sj_sender before = sender_of(&lab->maker, 0); /* an older recorder */
    put_metadata_as(lab, &before);
    const sj_sender now = sender_of(&lab->maker, 8);
    lab_file_begin(lab);
    assert_int_equal(apply_as(lab, &now, frame_maker_block(&lab->maker, 100, 0), &duplicate),
                     SJ_OK);
    lab_file_commit(lab);
}

static void a_device_announces_only_itself(void **state)
{
    lab_file *lab = *state;
    bool duplicate;
    sj_sender other = sender_of(&lab->maker, 0);
    other.device[1] = 99;
    other.has_token = true;
    lab_file_begin(lab);
    assert_int_equal(apply_as(lab, &other, frame_maker_hello(&lab->maker), &duplicate), SJ_EINVAL);
    assert_int_equal(apply_as(lab, &other, frame_maker_session(&lab->maker), &duplicate),
                     SJ_EINVAL);
    lab_file_commit(lab);
    lab_file_expect(lab, "SELECT count(*) FROM devices", "0|\n");
    lab_file_expect(lab, "SELECT count(*) FROM sessions", "0|\n");
}

/* Recovery cuts the events of a dead recorder into other blocks. */
static void events_that_are_cut_anew_are_duplicates(void **state)
{
    lab_file *lab = *state;
    bool duplicate = false;
    frame_maker again;
    frame_maker_init(&again, 1);
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_block(&lab->maker, 1000, 0));
    for (unsigned i = 0; i < 4; i++) {
        duplicate = false;
        assert_int_equal(lab_file_apply(lab, frame_maker_block(&again, 250, 0), &duplicate), SJ_OK);
        assert_true(duplicate);
    }
    lab_file_commit(lab);
    lab_file_expect(lab, "SELECT count(*), (SELECT count(*) FROM quarantined_blocks) FROM blocks",
                    "1|0|\n");
    frame_maker_deinit(&again);
}

/* Other events arrive for the same range, whole or in part. They are quarantined and never
 * acknowledged, so that neither version is lost. */
static void other_events_in_a_stored_range_are_quarantined(void **state)
{
    lab_file *lab = *state;
    static const uint32_t counts[] = {1000, 300, 1400};
    bool duplicate = false;
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_block(&lab->maker, 1000, 0));
    for (unsigned i = 0; i < 3; i++) {
        frame_maker liar;
        frame_maker_init(&liar, 1);
        liar.random ^= 0x5555;
        const sj_slice lie = frame_maker_block(&liar, counts[i], 0);
        for (unsigned k = 0; k < 2; k++) { /* the second time it is still kept once */
            assert_int_equal(lab_file_apply(lab, lie, &duplicate), SJ_EEXIST);
            assert_false(duplicate);
        }
        frame_maker_deinit(&liar);
    }
    lab_file_commit(lab);
    lab_file_expect(lab, "SELECT count(*) FROM blocks", "1|\n");
    lab_file_expect(lab, "SELECT event_count FROM quarantined_blocks ORDER BY quarantined_id",
                    "1000|\n300|\n1400|\n");
}

static void the_quarantine_is_bounded(void **state)
{
    lab_file *lab = *state;
    bool duplicate = false;
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    lab_file_put(lab, frame_maker_block(&lab->maker, 1000, 0));
    for (uint32_t i = 0; i < 40; i++) {
        frame_maker liar;
        frame_maker_init(&liar, 1);
        liar.random ^= 77 + i;
        assert_int_equal(lab_file_apply(lab, frame_maker_block(&liar, 200 + i, 0), &duplicate),
                         SJ_EEXIST);
        frame_maker_deinit(&liar);
    }
    lab_file_commit(lab);
    lab_file_expect(lab, "SELECT count(*) FROM quarantined_blocks", "16|\n");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, lab_file_set_up, lab_file_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(only_the_own_device_sends_for_a_session),
        CASE(a_session_without_tokens_is_protected_by_its_secret),
        CASE(a_session_without_secret_accepts_its_device),
        CASE(a_device_announces_only_itself),
        CASE(events_that_are_cut_anew_are_duplicates),
        CASE(other_events_in_a_stored_range_are_quarantined),
        CASE(the_quarantine_is_bounded),
    };
    return cmocka_run_group_tests_name("store.senders", tests, NULL, NULL);
}
