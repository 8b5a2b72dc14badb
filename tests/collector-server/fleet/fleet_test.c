/* The fleet's tables: which senders are accepted, commands from their start to their end, and rules
 * of policies. */
#include "collector-server/fleet/control.h"
#include "collector-server/fleet/export_jobs.h"
#include "collector-server/fleet/fleet_commands.h"
#include "collector-server/fleet/fleet_policies.h"
#include "collector-server/fleet/record_jobs.h"
#include "collector-server/fleet/session_grants.h"
#include "collector-server/store/database.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { DEVICES = 3 };

static char path[64];
static sj_fleet *fleet;
static char tokens[DEVICES][SJ_SECRET_TEXT_BYTES];
static uint8_t uuids[DEVICES][16];

static void run(const char *sql)
{
    if (sqlite3_exec(sj_fleet_database(fleet), sql, NULL, NULL, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(sj_fleet_database(fleet)));
    }
}

static int64_t number(const char *sql)
{
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_prepare_v2(sj_fleet_database(fleet), sql, -1, &statement, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    const int64_t found = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return found;
}

static sj_status enrol(int which, const char *invitation, int64_t *namesakes, sj_error *error)
{
    Sojourn__Hello hello = SOJOURN__HELLO__INIT;
    char *tags[] = {(char *)(uintptr_t)(which == 0 ? "site=oslo" : "site=bergen")};
    memset(uuids[which], which + 1, 16);
    hello.device_id.data = uuids[which];
    hello.device_id.len = 16;
    hello.device_name = (char *)(uintptr_t)(which == 2   ? "phone1"
                                            : which == 1 ? "phone1"
                                                         : "phone0");
    hello.token = (char *)(uintptr_t)invitation;
    hello.tags = tags;
    hello.n_tags = 1;
    return sj_fleet_enrol(fleet, &hello, tokens[which], namesakes, error);
}

static int set_up(void **state)
{
    (void)state;
    sqlite3 *database = NULL;
    sj_error error = {0};
    snprintf(path, sizeof(path), "fleet_test.%d.db", (int)getpid());
    if (sj_database_open(path, SJ_DATABASE_CREATE, &database, &error) != SJ_OK) {
        return -1;
    }
    sqlite3_close(database);
    if (sj_fleet_open(path, &fleet, &error) != SJ_OK) {
        return -1;
    }
    for (int i = 0; i < DEVICES; i++) {
        char invitation[SJ_SECRET_TEXT_BYTES];
        int64_t namesakes = -1;
        if (sj_fleet_invite(fleet, 1, 0, invitation, &error) != SJ_OK ||
            enrol(i, invitation, &namesakes, &error) != SJ_OK || namesakes != (i == 2)) {
            return -1;
        }
    }
    return 0;
}

static int tear_down(void **state)
{
    char other[80];
    (void)state;
    sj_fleet_close(fleet);
    snprintf(other, sizeof(other), "%s-wal", path);
    unlink(other);
    snprintf(other, sizeof(other), "%s-shm", path);
    unlink(other);
    return unlink(path);
}

static sj_status check(int which, const char *token)
{
    int64_t device_id = 0;
    sj_error error = {0};
    const ProtobufCBinaryData uuid = {.data = uuids[which], .len = 16};
    return sj_fleet_check(fleet, &uuid, token, &device_id, &error);
}

static void a_token_is_that_of_its_device_only(void **state)
{
    (void)state;
    char wrong[SJ_SECRET_TEXT_BYTES];
    assert_int_equal(check(0, tokens[0]), SJ_OK);
    assert_int_equal(check(0, tokens[1]), SJ_EPERM);
    assert_int_equal(check(0, ""), SJ_EPERM);
    for (size_t i = 0; i < sizeof(wrong) - 1; i++) {
        memcpy(wrong, tokens[0], sizeof(wrong));
        wrong[i] = wrong[i] == '0' ? '1' : '0';
        assert_int_equal(check(0, wrong), SJ_EPERM);
    }
    memset(uuids[0], 99, 16);
    assert_int_equal(check(0, tokens[0]), SJ_EPERM);
    assert_int_equal(number("SELECT count(*) FROM device_tokens WHERE length(token_hash) <> 32"),
                     0);
}

static void secrets_are_compared_byte_by_byte_to_the_end(void **state)
{
    (void)state;
    uint8_t left[SJ_SECRET_HASH_BYTES] = {0};
    uint8_t right[SJ_SECRET_HASH_BYTES] = {0};
    assert_true(sj_secret_equal(left, right));
    for (size_t i = 0; i < SJ_SECRET_HASH_BYTES; i++) {
        for (int bit = 0; bit < 8; bit++) {
            right[i] = (uint8_t)(1 << bit);
            assert_false(sj_secret_equal(left, right));
        }
        right[i] = 0;
    }
}

static void an_invitation_is_used_once_and_ends(void **state)
{
    (void)state;
    char invitation[SJ_SECRET_TEXT_BYTES];
    int64_t namesakes = 0;
    sj_error error = {0};
    assert_int_equal(sj_fleet_invite(fleet, 1, 0, invitation, &error), SJ_OK);
    run("UPDATE enrolment_tokens SET expires_realtime_ns = 1 WHERE used_realtime_ns IS NULL");
    assert_int_equal(enrol(0, invitation, &namesakes, &error), SJ_EPERM);
    assert_int_equal(enrol(0, "", &namesakes, &error), SJ_EPERM);
}

static void a_device_is_taken_over_by_an_invitation_for_it_only(void **state)
{
    (void)state;
    char invitation[SJ_SECRET_TEXT_BYTES];
    char before[SJ_SECRET_TEXT_BYTES];
    int64_t namesakes = 0;
    sj_error error = {0};
    memcpy(before, tokens[1], sizeof(before));
    assert_int_equal(sj_fleet_invite(fleet, 1, 0, invitation, &error), SJ_OK);
    assert_int_equal(enrol(1, invitation, &namesakes, &error), SJ_EPERM);
    assert_non_null(strstr(error.text, "enrolled already"));
    memcpy(tokens[1], before, sizeof(before));
    assert_int_equal(check(1, before), SJ_OK);
    assert_int_equal(sj_fleet_invite(fleet, 1, 1, invitation, &error), SJ_OK);
    /* the invitation is for device 1 */
    assert_int_equal(enrol(1, invitation, &namesakes, &error), SJ_EPERM);
    memcpy(tokens[1], before, sizeof(before));
    assert_int_equal(check(1, before), SJ_OK);
    assert_int_equal(number("SELECT count(*) FROM token_events WHERE what = 'taken over'"), 0);
    assert_int_equal(sj_fleet_invite(fleet, 1, 2, invitation, &error), SJ_OK);
    assert_int_equal(enrol(1, invitation, &namesakes, &error), SJ_OK);
    assert_int_equal(check(1, before), SJ_EPERM);
    assert_int_equal(check(1, tokens[1]), SJ_OK);
    assert_int_equal(number("SELECT device_id FROM token_events WHERE what = 'taken over'"), 2);
}

static void a_pass_ends_with_its_token(void **state)
{
    (void)state;
    sj_error error = {0};
    char invitation[SJ_SECRET_TEXT_BYTES];
    int64_t namesakes = 0;
    sj_session_grants *passes = sj_session_grants_new();
    assert_true(sj_session_grants_renew(passes, sj_fleet_database(fleet)));
    assert_false(sj_session_grants_renew(passes, sj_fleet_database(fleet)));
    const int64_t first = sj_session_grants_of_device(passes, 1);
    const int64_t second = sj_session_grants_of_device(passes, 2);
    assert_true(first != 0 && second != 0 && first != second);
    assert_true(sj_session_grants_has(passes, first));
    assert_false(sj_session_grants_has(passes, 0));
    assert_false(sj_session_grants_has(passes, 1000));
    assert_int_equal(sj_fleet_revoke(fleet, 1, "me", &error), SJ_OK);
    assert_int_equal(sj_fleet_revoke(fleet, 1, "me", &error), SJ_ENOTFOUND);
    assert_true(sj_session_grants_renew(passes, sj_fleet_database(fleet)));
    assert_false(sj_session_grants_has(passes, first));
    assert_false(sj_session_grants_has_device(passes, 1));
    assert_true(sj_session_grants_has(passes, second));
    assert_int_equal(sj_fleet_invite(fleet, 1, 2, invitation, &error), SJ_OK);
    assert_int_equal(enrol(1, invitation, &namesakes, &error), SJ_OK);
    assert_true(sj_session_grants_renew(passes, sj_fleet_database(fleet)));
    assert_false(sj_session_grants_has(passes, second));
    assert_true(sj_session_grants_has_device(passes, 2));
    assert_int_equal(number("SELECT count(*) FROM token_events WHERE what = 'revoked' AND"
                            " done_by = 'me'"),
                     1);
    sj_session_grants_free(passes);
}

static int64_t give(const char *devices, const char *kind, const char *arguments, sj_status wanted)
{
    json_t *given = NULL;
    sj_error error = {0};
    json_t *object = json_loads(arguments, 0, NULL);
    const sj_control_request request = {
        .devices = devices, .kind = kind, .arguments = object, .requested_by = "test"};
    const sj_status status = sj_control_give(fleet, &request, &given, &error);
    json_decref(object);
    if (status != wanted) {
        fail_msg("%s %s gave %d: %s", devices, kind, (int)status, error.text);
    }
    const int64_t first = json_integer_value(json_object_get(json_array_get(given, 0), "command"));
    json_decref(given);
    return first;
}

static sj_status next(int64_t device, uint64_t last, sj_fleet_command *command)
{
    sj_error error = {0};
    return sj_fleet_next(fleet, device, 0, last, command, &error);
}

static void a_command_is_repeated_until_it_is_claimed_and_ends_once(void **state)
{
    (void)state;
    sj_error error = {0};
    sj_fleet_command command;
    const int64_t first = give("1", "status", "{}", SJ_OK);
    const int64_t second = give("phone0", "ps", "{}", SJ_OK);
    assert_int_equal(next(2, 0, &command), SJ_ENOTFOUND);
    assert_int_equal(next(1, 0, &command), SJ_OK);
    assert_int_equal(command.command_id, first);
    assert_int_equal(next(1, 0, &command), SJ_OK); /* the device has not acknowledged it */
    assert_int_equal(command.command_id, first);
    assert_int_equal(next(1, (uint64_t)first, &command), SJ_OK);
    assert_int_equal(command.command_id, second);
    assert_int_equal(sj_fleet_finish(fleet, 2, (uint64_t)first, false, "of another", &error),
                     SJ_OK);
    assert_int_equal(number("SELECT count(*) FROM commands WHERE state = 'done'"), 0);
    assert_int_equal(sj_fleet_finish(fleet, 1, (uint64_t)first, false, "{}", &error), SJ_OK);
    assert_int_equal(sj_fleet_finish(fleet, 1, (uint64_t)first, true, "again", &error), SJ_OK);
    assert_int_equal(number("SELECT count(*) FROM commands WHERE state = 'done' AND result = '{}'"),
                     1);
    const sj_fleet_poll poll = {
        .is_restart = true, .last_command = (uint64_t)second, .status = "{}"};
    assert_int_equal(sj_fleet_note_poll(fleet, 1, &poll, &error), SJ_OK);
    assert_int_equal(
        number(
            "SELECT count(*) FROM commands WHERE state = 'failed' AND result LIKE '%restarted%'"),
        1);
}

static void a_status_that_is_no_object_is_stored_as_an_empty_one(void **state)
{
    (void)state;
    sj_error error = {0};
    static const char *const reported[] = {"", "}{", "[1]", "7", "{\"refused\": 1"};
    for (size_t i = 0; i < sizeof(reported) / sizeof(reported[0]); i++) {
        const sj_fleet_poll before = {.status = "{\"refused\": 2}"};
        const sj_fleet_poll poll = {.status = reported[i]};
        assert_int_equal(sj_fleet_note_poll(fleet, 1, &before, &error), SJ_OK);
        assert_int_equal(number("SELECT status ->> 'refused' FROM device_status"), 2);
        assert_int_equal(sj_fleet_note_poll(fleet, 1, &poll, &error), SJ_OK);
        assert_int_equal(number("SELECT count(*) FROM device_status WHERE status = '{}'"), 1);
    }
}

static void a_timeout_names_where_the_command_was(void **state)
{
    (void)state;
    sj_error error = {0};
    sj_fleet_command command;
    (void)give("1", "status", "{}", SJ_OK);
    (void)give("2", "status", "{}", SJ_OK);
    const int64_t exported = give("1", "export", "{\"session\": \"last\"}", SJ_OK);
    assert_int_equal(next(2, 0, &command), SJ_OK);
    assert_int_equal(sj_fleet_next_for_collector(fleet, 0, &command, &error), SJ_OK);
    assert_int_equal(command.command_id, exported);
    assert_int_equal(sj_fleet_expire(fleet, &error), SJ_OK);
    assert_int_equal(number("SELECT count(*) FROM commands WHERE state = 'timed_out'"), 0);
    run("UPDATE commands SET created_realtime_ns = 1");
    assert_int_equal(sj_fleet_expire(fleet, &error), SJ_OK);
    assert_int_equal(number("SELECT count(DISTINCT result) FROM commands WHERE state = 'timed_out'"
                            " AND finished_realtime_ns IS NOT NULL"),
                     3);
    assert_int_equal(next(1, 0, &command), SJ_ENOTFOUND);
}

/* Adds an ended session. One of its three blocks was refused for good, or has not arrived yet. */
static void add_session(bool is_refused)
{
    char sql[512];
    snprintf(sql, sizeof(sql),
             "INSERT INTO sessions (session_id, uuid, device_id, command, state,"
             " started_realtime_ns, started_ticks, tick_ns_numerator, tick_ns_denominator,"
             " sent_blocks, stored_blocks, missing_blocks)"
             " VALUES (7, x'0102030405060708090a0b0c0d0e0f10', 1, 'a', 'completed', 1, 0, 1, 1, 3,"
             " 2, %d)",
             is_refused);
    run(sql);
}

static void a_job_waits_for_blocks_but_not_for_those_that_were_refused(void **state)
{
    (void)state;
    sj_error error = {0};
    sj_fleet_command command = {.arguments = "{}"};
    json_t *progress = NULL;
    const int64_t record = give("1", "record", "{\"command\": [\"/a\"]}", SJ_OK);
    command.command_id = record;
    run("UPDATE commands SET state = 'preparing', result = '{\"prepare\": 1, \"launch\": 2,"
        " \"session\": \"0102030405060708090a0b0c0d0e0f10\"}'");
    add_session(false);
    assert_int_equal(sj_record_job_step(fleet, &command, &progress, &error), SJ_EAGAIN);
    run("DELETE FROM sessions");
    add_session(true);
    assert_int_equal(sj_record_job_step(fleet, &command, &progress, &error), SJ_OK);
    json_decref(progress);
}

/* The number of blocks that the device sent is unknown, so more may come. */
static void a_job_does_not_end_with_a_session_that_lost_contact(void **state)
{
    (void)state;
    sj_error error = {0};
    sj_fleet_command command = {.arguments = "{}"};
    json_t *progress = NULL;
    command.command_id = give("1", "record", "{\"command\": [\"/a\"]}", SJ_OK);
    run("UPDATE commands SET state = 'preparing', result = '{\"prepare\": 1, \"launch\": 2,"
        " \"session\": \"0102030405060708090a0b0c0d0e0f10\"}'");
    add_session(true);
    run("UPDATE sessions SET state = 'lost contact', sent_blocks = NULL");
    assert_int_equal(sj_record_job_step(fleet, &command, &progress, &error), SJ_EAGAIN);
    run("UPDATE sessions SET state = 'completed', sent_blocks = 3");
    assert_int_equal(sj_record_job_step(fleet, &command, &progress, &error), SJ_OK);
    json_decref(progress);
}

/* Runs the pending jobs, as the collector's thread does, until `sql` is not 0. */
static void export_until(const char *sql)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    sj_export_jobs *maker = NULL;
    sj_error error = {0};
    assert_int_equal(sj_export_jobs_start(path, &maker, &error), SJ_OK);
    for (int i = 0; number(sql) == 0 && i < 12000; i++) {
        nanosleep(&moment, NULL);
    }
    sj_export_jobs_stop(maker);
    assert_int_equal(number(sql), 1);
}

static void a_session_of_which_blocks_were_refused_is_exported(void **state)
{
    (void)state;
    char remove_files[96];
    add_session(true);
    (void)give("1", "export", "{\"session\": \"last\"}", SJ_OK);
    export_until("SELECT count(*) FROM commands WHERE state IN ('done', 'failed', 'timed_out')");
    assert_int_equal(number("SELECT count(*) FROM commands WHERE state = 'done'"), 1);
    snprintf(remove_files, sizeof(remove_files), "rm -rf %s.files", path);
    assert_int_equal(system(remove_files), 0);
}

static void a_revoked_device_gets_no_command(void **state)
{
    (void)state;
    sj_error error = {0};
    sj_fleet_command command;
    (void)give("1", "status", "{}", SJ_OK);
    assert_int_equal(sj_fleet_revoke(fleet, 1, "me", &error), SJ_OK);
    assert_int_equal(next(1, 0, &command), SJ_ENOTFOUND);
    (void)give("all", "status", "{}", SJ_OK);
    assert_int_equal(number("SELECT count(*) FROM commands"), 3); /* the two others */
}

static void only_the_device_that_was_sent_a_file_may_fetch_it(void **state)
{
    (void)state;
    sj_error error = {0};
    sj_fleet_command command;
    const sj_fleet_new_command order = {.device_id = 1,
                                        .kind = "write",
                                        .arguments = "{\"file\": 7}",
                                        .requested_by = "collector",
                                        .timeout_ms = 1000};
    int64_t command_id = 0;
    assert_int_equal(sj_fleet_command_add(fleet, &order, &command_id, &error), SJ_OK);
    assert_int_equal(sj_fleet_may_fetch(fleet, 1, 7, &error), SJ_EPERM);
    assert_int_equal(next(1, 0, &command), SJ_OK);
    assert_int_equal(sj_fleet_may_fetch(fleet, 1, 7, &error), SJ_OK);
    assert_int_equal(sj_fleet_may_fetch(fleet, 1, 8, &error), SJ_EPERM);
    assert_int_equal(sj_fleet_may_fetch(fleet, 2, 7, &error), SJ_EPERM);
    assert_int_equal(sj_fleet_finish(fleet, 1, (uint64_t)command_id, false, "{}", &error), SJ_OK);
    assert_int_equal(sj_fleet_may_fetch(fleet, 1, 7, &error), SJ_EPERM);
}

static void devices_are_named_and_those_that_cannot_be_are_refused(void **state)
{
    (void)state;
    (void)give("phone0", "status", "{}", SJ_OK);
    (void)give("01010101", "status", "{}", SJ_OK);
    (void)give("phone1", "status", "{}", SJ_EINVAL); /* two devices have this name */
    (void)give("2", "status", "{}", SJ_OK);
    (void)give("0101%", "status", "{}", SJ_ENOTFOUND);
    (void)give("", "status", "{}", SJ_ENOTFOUND);
    (void)give("' OR 1 --", "status", "{}", SJ_ENOTFOUND);
    (void)give("tag:site=bergen", "status", "{}", SJ_OK);
    assert_int_equal(number("SELECT count(*) FROM commands WHERE device_id IN (2, 3)"), 3);
    (void)give("tag:site=' OR 1 --", "status", "{}", SJ_ENOTFOUND);
    (void)give("all", "nothing", "{}", SJ_EUNSUPPORTED);
    (void)give("all", "tags", "{\"tags\": {\"a'b\": \"c\"}}", SJ_EINVAL);
}

/* Checks the newest command `policies` of a device: its rules' apps and names. */
static void expect_rules(int64_t device, const char *wanted)
{
    char sql[512];
    snprintf(
        sql, sizeof(sql),
        "SELECT coalesce((SELECT group_concat(r.value ->> 'app' || ':' ||"
        " (r.value ->> '$.policy.name')) FROM json_each(c.arguments, '$.rules') AS r), '') = '%s'"
        " FROM commands c WHERE kind = 'policies' AND device_id = %lld"
        " ORDER BY command_id DESC LIMIT 1",
        wanted, (long long)device);
    if (number(sql) != 1) {
        fail_msg("device %lld has not \"%s\"", (long long)device, wanted);
    }
}

static void the_more_specific_rule_comes_first_and_devices_follow(void **state)
{
    (void)state;
    sj_error error = {0};
    int64_t command_id = 0;
    (void)give("all", "policy", "{\"policy\": {\"policy\": 1, \"name\": \"a\"}}", SJ_OK);
    (void)give("tag:site=oslo", "policy", "{\"policy\": {\"policy\": 1, \"name\": \"t\"}}", SJ_OK);
    (void)give("all", "policy", "{\"app\": \"x\", \"policy\": {\"policy\": 1, \"name\": \"ax\"}}",
               SJ_OK);
    (void)give("1", "policy", "{\"policy\": {\"policy\": 1, \"name\": \"d\"}}", SJ_OK);
    expect_rules(1, ":d,:t,x:ax,:a");
    expect_rules(2, "x:ax,:a");
    (void)give("2", "tags", "{\"tags\": {\"site\": \"oslo\"}}", SJ_OK);
    expect_rules(2, ":t,x:ax,:a");
    const int64_t before = number("SELECT count(*) FROM commands WHERE kind = 'policies'");
    assert_int_equal(
        sj_fleet_policies_sync(fleet, 2, "old", "collector", 1000, &command_id, &error), SJ_OK);
    assert_int_equal(command_id, 0); /* one command is running */
    run("UPDATE commands SET state = 'timed_out' WHERE kind = 'policies'");
    assert_int_equal(
        sj_fleet_policies_sync(fleet, 2, "old", "collector", 1000, &command_id, &error), SJ_OK);
    assert_int_not_equal(command_id, 0);
    assert_int_equal(number("SELECT count(*) FROM commands WHERE kind = 'policies'"), before + 1);
    char digest[80];
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_prepare_v2(sj_fleet_database(fleet),
                                        "SELECT arguments ->> 'digest' FROM commands"
                                        " ORDER BY command_id DESC LIMIT 1",
                                        -1, &statement, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    snprintf(digest, sizeof(digest), "%s", (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    run("UPDATE commands SET state = 'done' WHERE kind = 'policies'");
    assert_int_equal(
        sj_fleet_policies_sync(fleet, 2, digest, "collector", 1000, &command_id, &error), SJ_OK);
    assert_int_equal(command_id, 0);
    (void)give("tag:site=oslo", "policy", "{}", SJ_OK);
    expect_rules(2, "x:ax,:a");
    (void)give("tag:site=oslo", "policy", "{}", SJ_ENOTFOUND);
}

static void rules_that_no_command_can_carry_are_refused_whole(void **state)
{
    (void)state;
    char *arguments = malloc(70000);
    memset(arguments, ' ', 70000);
    snprintf(arguments, 70000, "{\"policy\": {\"policy\": 1, \"description\": \"");
    memset(arguments + strlen(arguments), 'x', 50000);
    snprintf(arguments + 50040, 1000, "\"}}");
    (void)give("all", "policy", arguments, SJ_ELIMIT);
    free(arguments);
    assert_int_equal(number("SELECT count(*) FROM policy_rules"), 0);
    assert_int_equal(number("SELECT count(*) FROM commands"), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_token_is_that_of_its_device_only),
        CASE(secrets_are_compared_byte_by_byte_to_the_end),
        CASE(an_invitation_is_used_once_and_ends),
        CASE(a_pass_ends_with_its_token),
        CASE(a_device_is_taken_over_by_an_invitation_for_it_only),
        CASE(a_command_is_repeated_until_it_is_claimed_and_ends_once),
        CASE(a_status_that_is_no_object_is_stored_as_an_empty_one),
        CASE(a_timeout_names_where_the_command_was),
        CASE(a_job_waits_for_blocks_but_not_for_those_that_were_refused),
        CASE(a_job_does_not_end_with_a_session_that_lost_contact),
        CASE(a_session_of_which_blocks_were_refused_is_exported),
        CASE(a_revoked_device_gets_no_command),
        CASE(only_the_device_that_was_sent_a_file_may_fetch_it),
        CASE(devices_are_named_and_those_that_cannot_be_are_refused),
        CASE(the_more_specific_rule_comes_first_and_devices_follow),
        CASE(rules_that_no_command_can_carry_are_refused_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
