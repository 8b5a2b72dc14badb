/* Design notes. A device always gets the whole list of rules that concern it, sorted by precedence,
 * and a digest of the list. The device reports the digest with each poll. So a device that was
 * offline, or whose tags changed, gets its current rules at the next poll. */
#include "collector-server/fleet/fleet_policies.h"

#include "agent/policy/policy.h"
#include "collector-server/fleet/fleet_commands.h"
#include "collector-server/fleet/fleet_internal.h"
#include "schema/queries/fleet/fleet_policies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGEST_BYTES = 16, DIGEST_TEXT_BYTES = 2 * DIGEST_BYTES + 1 };

static sj_status add_rule(void *rules, sqlite3_stmt *row)
{
    json_t *policy = json_loads((const char *)sqlite3_column_text(row, 2), 0, NULL);
    json_array_append_new(
        rules, json_pack("{sI ss so*}", "rule", (json_int_t)sqlite3_column_int64(row, 0), "app",
                         (const char *)sqlite3_column_text(row, 1), "policy", policy));
    return SJ_OK;
}

static sj_status read_rules(sj_fleet *fleet, int64_t device_id, json_t *rules, sj_error *error)
{
    return sj_sql_each(fleet->database, sj_fleet_policies_rules_sql, SJ_SQL_INTS(device_id),
                       add_rule, rules, error);
}

/* Writes the digest of a list of rules in hexadecimal digits. Writes "" if the list is empty. */
static void digest_of(const json_t *rules, char digest[DIGEST_TEXT_BYTES])
{
    uint8_t hash[SJ_SECRET_HASH_BYTES];
    char *text = json_dumps(rules, JSON_COMPACT | JSON_PRESERVE_ORDER);
    digest[0] = '\0';
    if (text != NULL && json_array_size(rules) != 0) {
        sj_secret_hash(text, hash);
        for (size_t i = 0; i < DIGEST_BYTES; i++) {
            snprintf(digest + 2 * i, 3, "%02x", hash[i]);
        }
    }
    free(text);
}

/* Returns SJ_OK if the device lacks the rules with `digest` and no command with them is queued or
 * sent. Returns SJ_ENOTFOUND if the device needs no command. `has` is the digest of the device's
 * rules, or NULL for the digest that the device last reported. */
static sj_status is_wanted(sj_fleet *fleet, int64_t device_id, const char *has, const char *digest,
                           sj_error *error)
{
    sqlite3_stmt *statement;
    int64_t wanted = 0;
    SJ_TRY(sj_fleet_prepare(fleet, sj_fleet_policies_is_wanted_sql, &statement, error));
    sqlite3_bind_int64(statement, 1, device_id);
    sj_fleet_bind_text(statement, 2, has);
    sj_fleet_bind_text(statement, 3, digest);
    SJ_TRY(sj_fleet_read_number(fleet, statement, &wanted, error));
    return wanted != 0 ? SJ_OK : SJ_ENOTFOUND;
}

sj_status sj_fleet_policies_sync(sj_fleet *fleet, int64_t device_id, const char *has,
                                 const char *requested_by, uint32_t timeout_ms, int64_t *command_id,
                                 sj_error *error)
{
    char digest[DIGEST_TEXT_BYTES];
    json_t *rules = json_array();
    *command_id = 0;
    sj_status status = read_rules(fleet, device_id, rules, error);
    if (status == SJ_OK) {
        digest_of(rules, digest);
        status = is_wanted(fleet, device_id, has, digest, error);
    }
    if (status == SJ_OK) {
        json_t *arguments = json_pack("{ss sO}", "digest", digest, "rules", rules);
        char *text = json_dumps(arguments, JSON_COMPACT | JSON_PRESERVE_ORDER);
        const sj_fleet_new_command new_command = {.device_id = device_id,
                                                  .kind = "policies",
                                                  .arguments = text != NULL ? text : "",
                                                  .requested_by = requested_by,
                                                  .timeout_ms = timeout_ms};
        status = text != NULL ? sj_fleet_command_add(fleet, &new_command, command_id, error)
                              : sj_fail(error, SJ_ENOMEM, "out of memory");
        free(text);
        json_decref(arguments);
    }
    json_decref(rules);
    return status == SJ_ENOTFOUND ? SJ_OK : status;
}

static const char *scope_text(sj_fleet_scope scope)
{
    static const char *const texts[] = {
        [SJ_FLEET_ALL] = "all", [SJ_FLEET_TAG] = "tag", [SJ_FLEET_DEVICE] = "device"};
    return texts[scope];
}

static sj_status end_rule(sj_fleet *fleet, const sj_fleet_rule *rule, sj_error *error)
{
    sqlite3_stmt *statement;
    int64_t ended = 0;
    SJ_TRY(sj_fleet_prepare(fleet,
                            "UPDATE policy_rules SET ended_realtime_ns = ?4 WHERE scope = ?1"
                            " AND subject = ?2 AND app = ?3 AND ended_realtime_ns IS NULL"
                            " RETURNING rule_id",
                            &statement, error));
    sj_fleet_bind_text(statement, 1, scope_text(rule->set->scope));
    sj_fleet_bind_text(statement, 2, rule->set->subject);
    sj_fleet_bind_text(statement, 3, rule->app);
    sqlite3_bind_int64(statement, 4, sj_fleet_now_ns());
    return sj_fleet_read_number(fleet, statement, &ended, error);
}

static sj_status begin_rule(sj_fleet *fleet, const sj_fleet_rule *rule, sj_error *error)
{
    sqlite3_stmt *statement;
    const char *shipped = json_string_value(rule->policy);
    json_t *document = shipped != NULL ? json_loads(sj_policy_preset(shipped), 0, NULL) : NULL;
    char *text = json_dumps(document != NULL ? document : rule->policy,
                            JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    json_decref(document);
    if (text == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    sj_status status =
        sj_fleet_prepare(fleet,
                         "INSERT INTO policy_rules (scope, subject, app, document, set_by,"
                         " set_realtime_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                         &statement, error);
    if (status == SJ_OK) {
        sj_fleet_bind_text(statement, 1, scope_text(rule->set->scope));
        sj_fleet_bind_text(statement, 2, rule->set->subject);
        sj_fleet_bind_text(statement, 3, rule->app);
        sj_fleet_bind_text(statement, 4, text);
        sj_fleet_bind_text(statement, 5, rule->set_by);
        sqlite3_bind_int64(statement, 6, sj_fleet_now_ns());
        status = sj_fleet_finish_statement(fleet, statement, error);
    }
    free(text);
    return status;
}

static sj_status put_rule(sj_fleet *fleet, const sj_fleet_rule *rule, json_t *commands,
                          sj_error *error)
{
    sj_status status = end_rule(fleet, rule, error);
    if (status == SJ_ENOTFOUND && rule->policy == NULL) {
        return sj_fail(error, status,
                       "no such policy is set; `sojourn devices --policies` lists "
                       "those that are");
    }
    if (status == SJ_OK || status == SJ_ENOTFOUND) {
        status = rule->policy != NULL ? begin_rule(fleet, rule, error) : SJ_OK;
    }
    for (size_t i = 0; i < rule->set->count && status == SJ_OK; i++) {
        int64_t command_id = 0;
        status = sj_fleet_policies_sync(fleet, rule->set->devices[i], NULL, rule->set_by,
                                        rule->timeout_ms, &command_id, error);
        if (command_id != 0) {
            json_array_append_new(commands, json_integer((json_int_t)command_id));
        }
    }
    return status;
}

sj_status sj_fleet_rule_put(sj_fleet *fleet, const sj_fleet_rule *rule, json_t **commands,
                            sj_error *error)
{
    json_t *made = json_array();
    sj_status status = sj_fleet_begin(fleet, error);
    if (status == SJ_OK) {
        status = sj_fleet_end(fleet, put_rule(fleet, rule, made, error), error);
    }
    if (status != SJ_OK) {
        json_decref(made);
        return status;
    }
    *commands = made;
    return SJ_OK;
}
