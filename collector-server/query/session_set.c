/* Design notes. A set becomes one SQL query. Each group is a SELECT, and UNION joins the groups.
 * The groups that are one session_id each share a SELECT. The user's text gets into the query only
 * as quoted values or as digits. */
#include "collector-server/query/session_set.h"

#include "collector-server/store/sql.h"

#include "proto/base/array.h"
#include "schema/queries/query/session_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lists of sessions show the first SHOWN_DIGITS digits of a uuid. A number with as many digits or
 * more may be the beginning of a uuid. */
enum { FILTER_BYTES = 16384, SHOWN_DIGITS = 8 };

typedef struct filter_kind {
    const char *prefix;    /* with its colon */
    const char *condition; /* %Q: the value */
} filter_kind;

static const filter_kind kinds[] = {
    {"device:", "s.device_id IN (SELECT device_id FROM devices WHERE name = %Q)"},
    {"name:", "s.name GLOB %Q"},
    {"command:", "s.command GLOB %Q"},
    {"since:", "s.started_realtime_ns >= unixepoch(%Q) * 1000000000"},
    {"until:", "s.started_realtime_ns < unixepoch(%Q) * 1000000000"},
    {"build:", "s.session_id IN (SELECT sm.session_id FROM session_modules AS sm JOIN modules AS m "
               "USING (module_id) WHERE lower(hex(m.build_id)) LIKE lower(%Q) || '%%')"},
    {"last:", "s.session_id IN (SELECT session_id FROM sessions ORDER BY started_realtime_ns DESC, "
              "session_id DESC LIMIT CAST(%Q AS INTEGER))"},
    {"device-id:", "s.device_id = CAST(%Q AS INTEGER)"},
};

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool consists_of(const char *text, const char *letters)
{
    return text[0] != '\0' && text[strspn(text, letters)] == '\0';
}

/* Returns a condition on a JSON object of tags: "key" wants the key with any value, "key=value"
 * wants that value. The caller frees it with sqlite3_free. Returns NULL if out of memory. */
static char *format_tag_condition(const char *column, const char *tag)
{
    const char *equals = strchr(tag, '=');
    if (equals == NULL) {
        return sqlite3_mprintf("EXISTS (SELECT 1 FROM json_each(%s) AS t WHERE t.key = %Q)", column,
                               tag);
    }
    return sqlite3_mprintf("EXISTS (SELECT 1 FROM json_each(%s) AS t WHERE t.key = %.*Q AND "
                           "CAST(t.value AS TEXT) = %Q)",
                           column, (int)(equals - tag), tag, equals + 1);
}

static char *session_tag_condition(const char *tag)
{
    return format_tag_condition("s.tags", tag);
}

/* Compares the tags that the device has now, not its tags during the recording. */
static char *device_tag_condition(const char *tag)
{
    char *inner = format_tag_condition("d.tags", tag);
    char *condition =
        inner != NULL ? sqlite3_mprintf(
                            "s.device_id IN (SELECT d.device_id FROM devices AS d WHERE %s)", inner)
                      : NULL;
    sqlite3_free(inner);
    return condition;
}

/* The caller frees the condition with sqlite3_free. Returns NULL if `filter` is not a filter, or if
 * out of memory. */
static char *filter_condition(const char *filter)
{
    if (strcmp(filter, "all") == 0) {
        return sqlite3_mprintf("1");
    }
    if (strcmp(filter, "last") == 0) {
        return sqlite3_mprintf(kinds[6].condition, "1");
    }
    if (begins(filter, "tag:") && filter[4] != '\0') {
        return session_tag_condition(filter + 4);
    }
    if (begins(filter, "device-tag:") && filter[11] != '\0') {
        return device_tag_condition(filter + 11);
    }
    if (begins(filter, "mark:") && filter[5] != '\0') {
        return sqlite3_mprintf("k.name = %Q", filter + 5);
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
        const size_t length = strlen(kinds[i].prefix);
        if (begins(filter, kinds[i].prefix) && filter[length] != '\0') {
            return sqlite3_mprintf(kinds[i].condition, filter + length);
        }
    }
    if (consists_of(filter, "0123456789") && strlen(filter) < 19) {
        return sqlite3_mprintf(strlen(filter) < SHOWN_DIGITS
                                   ? "s.session_id = %s"
                                   : "(s.session_id = %s OR (hex(s.uuid) LIKE '%s%%' AND NOT "
                                     "EXISTS (SELECT 1 FROM sessions WHERE session_id = %s)))",
                               filter, filter, filter);
    }
    if (consists_of(filter, "0123456789abcdefABCDEF") && strlen(filter) >= 4) {
        return sqlite3_mprintf("lower(hex(s.uuid)) LIKE lower(%Q) || '%%'", filter);
    }
    return NULL;
}

/* Appends the SELECT of a group. Overwrites each '+' between its filters. */
static sj_status add_group(sqlite3_str *sql, char *group, sj_error *error)
{
    bool has_mark = false;
    sqlite3_str *conditions = sqlite3_str_new(NULL);
    char *remaining = group;
    for (char *filter; (filter = strsep(&remaining, "+")) != NULL;) {
        char *condition = filter_condition(filter);
        if (condition == NULL) {
            sqlite3_free(sqlite3_str_finish(conditions));
            return sj_fail(error, SJ_EINVAL,
                           "'%s' names no sessions: give a session_id, the beginning of a uuid, "
                           "`last`, `last:N`, `all`, or device: device-id: device-tag: build: tag: "
                           "name: command: since: "
                           "until: mark: with a value; join with + (and) and , (or)",
                           filter);
        }
        has_mark = has_mark || begins(filter, "mark:");
        sqlite3_str_appendf(conditions, " AND %s", condition);
        sqlite3_free(condition);
    }
    char *text = sqlite3_str_finish(conditions);
    sqlite3_str_appendf(sql,
                        has_mark ? sj_session_set_marks_sql
                                 : "%sSELECT s.session_id, NULL, NULL FROM sessions AS s WHERE 1%s",
                        sqlite3_str_length(sql) != 0 ? " UNION " : "",
                        text != NULL ? text : " AND 0");
    sqlite3_free(text);
    return text != NULL ? SJ_OK : sj_fail(error, SJ_ENOMEM, "no memory for a set of sessions");
}

/* Appends the SELECT for a list of session_ids, if there are any; frees `ids`. */
static void add_ids(sqlite3_str *sql, sqlite3_str *ids)
{
    char *list = sqlite3_str_finish(ids);
    if (list != NULL) {
        sqlite3_str_appendf(
            sql, "%sSELECT s.session_id, NULL, NULL FROM sessions AS s WHERE s.session_id IN (%s)",
            sqlite3_str_length(sql) != 0 ? " UNION " : "", list);
    }
    sqlite3_free(list);
}

typedef struct sample_list {
    sj_session_set *set;
    size_t capacity, most;
    sj_error *error;
} sample_list;

static sj_status add_sample(void *context, sqlite3_stmt *row)
{
    sample_list *list = context;
    sj_session_set *set = list->set;
    if (set->count == list->most) {
        return sj_fail(list->error, SJ_ELIMIT, "a set of more than %zu samples; narrow it",
                       list->most);
    }
    SJ_TRY(sj_array_reserve(&set->samples, &list->capacity, set->count, 1, sizeof(*set->samples)));
    set->samples[set->count++] = (sj_sample){
        .session_id = sqlite3_column_int64(row, 0),
        .windowed = sqlite3_column_type(row, 1) != SQLITE_NULL,
        .from_ns = sqlite3_column_int64(row, 1),
        .to_ns = sqlite3_column_int64(row, 2),
    };
    return SJ_OK;
}

static sj_status run_selection(sqlite3 *database, const char *sql, const char *text, size_t most,
                               sj_session_set *set, sj_error *error)
{
    sample_list list = {.set = set, .most = most, .error = error};
    const sj_status status =
        sj_sql_each(database, sql, (sj_sql_binds){0}, add_sample, &list, error);
    if (status == SJ_OK && set->count == 0) {
        return sj_fail(error, SJ_ENOTFOUND,
                       "no session belongs to '%s'; `sojourn sessions` lists them", text);
    }
    return status;
}

sj_status sj_session_set_read(sqlite3 *database, const char *text, size_t most, sj_session_set *set,
                              sj_error *error)
{
    char copy[FILTER_BYTES];
    *set = (sj_session_set){0};
    if (strlen(text) >= sizeof(copy)) {
        return sj_fail(error, SJ_EINVAL, "a set of sessions is named by at most %d letters",
                       (int)FILTER_BYTES - 1);
    }
    snprintf(copy, sizeof(copy), "%s", text);
    sqlite3_str *sql = sqlite3_str_new(database);
    sj_status status = SJ_OK;
    sqlite3_str *ids = sqlite3_str_new(database);
    char *remaining = copy;
    for (char *group; status == SJ_OK && (group = strsep(&remaining, ",")) != NULL;) {
        if (consists_of(group, "0123456789") && strlen(group) < SHOWN_DIGITS) {
            sqlite3_str_appendf(ids, "%s%s", sqlite3_str_length(ids) != 0 ? "," : "", group);
        } else {
            status = add_group(sql, group, error);
        }
    }
    add_ids(sql, ids);
    sqlite3_str_appendall(sql, " ORDER BY 1, 2");
    char *query = sqlite3_str_finish(sql);
    if (status == SJ_OK) {
        status = query == NULL ? sj_fail(error, SJ_ENOMEM, "no memory for a set of sessions")
                               : run_selection(database, query, text, most, set, error);
    }
    sqlite3_free(query);
    if (status != SJ_OK) {
        sj_session_set_deinit(set);
    }
    return status;
}

void sj_session_set_deinit(sj_session_set *set)
{
    free(set->samples);
    *set = (sj_session_set){0};
}
