/* A device announces its sessions again to a restarted collector. This does not change what a
 * person did with them meanwhile. */
#include "collector-server/maintenance/removal.h"
#include "collector-server/store/database.h"
#include "proto/wire/sojourn.pb-c.h"
#include "tests/collector-server/store/lab_file.h"
#include "tests/support/check.h"

static sj_status announce(lab_file *lab, sj_slice frame)
{
    bool duplicate;
    lab_file_begin(lab);
    const sj_status status = lab_file_apply(lab, frame, &duplicate);
    lab_file_commit(lab);
    return status;
}

static void name_and_tags_set_by_a_user_stay(void **state)
{
    lab_file *lab = *state;
    lab_file_put_metadata(lab);
    lab_file_run(lab, "UPDATE sessions SET name = 'mine', tags = '{\"owner\":\"me\"}', pinned = 1");
    assert_int_equal(announce(lab, frame_maker_session(&lab->maker)), SJ_OK);
    lab_file_expect(lab, "SELECT name, tags, pinned FROM sessions", "mine|{\"owner\":\"me\"}|1|\n");
}

/* Returns a session of the maker's device that names the maker's session as its parent. */
static sj_slice child_of(frame_maker *maker, uint8_t header[256])
{
    uint8_t parent[SJ_SESSION_ID_BYTES];
    uint8_t child[SJ_SESSION_ID_BYTES];
    uint8_t device[SJ_DEVICE_ID_BYTES] = {0xd0, maker->session_tag};
    Sojourn__Session session = SOJOURN__SESSION__INIT;
    memset(parent, maker->session_tag, sizeof(parent));
    memset(child, maker->session_tag + 1, sizeof(child));
    session.session_id = (ProtobufCBinaryData){.data = child, .len = sizeof(child)};
    session.parent_session_id = (ProtobufCBinaryData){.data = parent, .len = sizeof(parent)};
    session.device_id = (ProtobufCBinaryData){.data = device, .len = sizeof(device)};
    session.started_ticks = FRAME_MAKER_STARTED_TICKS;
    session.tick_ns_numerator = session.tick_ns_denominator = 1;
    const sj_slice packed = {.data = header, .size = sojourn__session__pack(&session, header)};
    return frame_maker_wrap(maker, SJ_FRAME_SESSION, packed, (sj_slice){0});
}

static void a_child_that_came_before_its_parent_is_linked(void **state)
{
    lab_file *lab = *state;
    uint8_t header[256];
    static const char links[] = "SELECT c.parent_session_id IS p.session_id FROM sessions AS c,"
                                " sessions AS p WHERE c.name = '' AND p.name <> ''";
    assert_int_equal(announce(lab, child_of(&lab->maker, header)), SJ_OK);
    assert_int_equal(announce(lab, frame_maker_session(&lab->maker)), SJ_OK);
    lab_file_expect(lab, links, "0|\n");
    assert_int_equal(announce(lab, child_of(&lab->maker, header)), SJ_OK);
    lab_file_expect(lab, links, "1|\n");
}

static void check_refused(lab_file *lab)
{
    bool duplicate;
    lab_file_begin(lab);
    assert_int_equal(lab_file_apply(lab, frame_maker_session(&lab->maker), &duplicate), SJ_EINVAL);
    assert_non_null(strstr(lab->error.text, "was removed"));
    lab_file_commit(lab);
    assert_int_equal(announce(lab, frame_maker_module(&lab->maker)), SJ_ENOTFOUND);
    assert_int_equal(announce(lab, frame_maker_mark(&lab->maker, 1)), SJ_ENOTFOUND);
}

static void a_removed_session_does_not_come_back(void **state)
{
    lab_file *lab = *state;
    sqlite3 *database = NULL;
    lab_file_put_metadata(lab);
    assert_int_equal(sj_database_open(lab->path, SJ_DATABASE_WRITE, &database, &lab->error), SJ_OK);
    assert_int_equal(sj_session_remove(database, 1, "test", true, &lab->error), SJ_OK);
    sqlite3_close(database);
    check_refused(lab);
    lab_file_expect(lab, "SELECT count(*) FROM sessions", "0|\n");
}

static void a_session_that_is_being_removed_accepts_no_frame(void **state)
{
    lab_file *lab = *state;
    lab_file_put_metadata(lab);
    lab_file_run(lab, "INSERT INTO removals SELECT NULL, uuid, name, '', 0, 0, 'test', 0 FROM"
                      " sessions; UPDATE sessions SET state = 'removing'");
    check_refused(lab);
    lab_file_expect(lab, "SELECT state, (SELECT count(*) FROM marks) FROM sessions",
                    "removing|0|\n");
    /* an import restores this state */
    lab_file_run(lab, "UPDATE sessions SET state = 'recording'");
    assert_int_equal(announce(lab, frame_maker_session(&lab->maker)), SJ_OK);
    assert_int_equal(announce(lab, frame_maker_mark(&lab->maker, 1)), SJ_OK);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, lab_file_set_up, lab_file_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(name_and_tags_set_by_a_user_stay),
        CASE(a_child_that_came_before_its_parent_is_linked),
        CASE(a_removed_session_does_not_come_back),
        CASE(a_session_that_is_being_removed_accepts_no_frame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
