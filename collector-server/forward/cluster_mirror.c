/* Design notes
 *
 * Changes are found by comparing (session, version) of all sessions. They are compared only if the
 * sum over all of them has changed. The versions of different labs cannot be ordered. */
#include "collector-server/forward/cluster_mirror.h"

#include "collector-server/forward/clickhouse.h"
#include "collector-server/forward/cluster_copy.h"
#include "collector-server/query/session_set.h"
#include "collector-server/store/database.h"

#include "schema/queries/forward/mirror.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PRINT_BYTES = 128,
    ENGINE_BYTES = 640,
    TIME_MS = 60000,
    AT_ONCE = 500,
    MOST_SESSIONS = 100000
};

struct sj_cluster_mirror {
    pthread_mutex_t lock;
    sj_forward_target *target;
    sqlite3 *database;
    char seen[PRINT_BYTES]; /* number and checksum of the cluster's sessions at the last refresh */
    bool is_torn;           /* shards came or went during the refresh */
    int64_t most_sessions;  /* the number of newest sessions that are listed */
    /* SQL condition that selects the newest sessions; empty: all are listed */
    char newest[PRINT_BYTES];
    /* Protects `engine` and `unknown`, so that their readers do not wait for the cluster. */
    pthread_mutex_t engine_lock;
    char engine[ENGINE_BYTES];
    int64_t unknown; /* number of sessions that do not say which times are estimates */
};

static sj_status fail_sql(sj_cluster_mirror *mirror, sj_error *error)
{
    return sj_fail(error, sj_database_status(sqlite3_extended_errcode(mirror->database)),
                   "cannot follow the cluster: %s", sqlite3_errmsg(mirror->database));
}

static sj_status run(sj_cluster_mirror *mirror, const char *sql, sj_error *error)
{
    return sqlite3_exec(mirror->database, sql, NULL, NULL, NULL) == SQLITE_OK
               ? SJ_OK
               : fail_sql(mirror, error);
}

/* Reads the number and the checksum of the cluster's sessions. */
static sj_status read_seen(sj_cluster_mirror *mirror, char seen[PRINT_BYTES], sj_error *error)
{
    char *reply = NULL;
    size_t size = 0;
    SJ_TRY(sj_clickhouse_ask(mirror->target,
                             "SELECT count(), sum(cityHash64(toString(session), version)) "
                             "FROM sessions",
                             SJ_CLICKHOUSE_PARTIAL, TIME_MS, &reply, &size, error));
    snprintf(seen, PRINT_BYTES, "%s", reply);
    free(reply);
    return SJ_OK;
}

/* Sets `newest` to an SQL condition that selects the newest `most_sessions` sessions, or to ""
 * if there are not more. */
static sj_status find_newest(sj_cluster_mirror *mirror, const char *seen, sj_error *error)
{
    char sql[256];
    char *reply = NULL;
    size_t size = 0;
    mirror->newest[0] = '\0';
    if (strtoll(seen, NULL, 10) <= mirror->most_sessions) {
        return SJ_OK;
    }
    snprintf(sql, sizeof(sql),
             "SELECT min(at) FROM (SELECT started_realtime_ns AS at FROM sessions ORDER BY at DESC "
             "LIMIT %lld) AS q1",
             (long long)mirror->most_sessions);
    SJ_TRY(sj_clickhouse_ask(mirror->target, sql, SJ_CLICKHOUSE_PARTIAL, TIME_MS, &reply, &size,
                             error));
    snprintf(mirror->newest, sizeof(mirror->newest), " WHERE started_realtime_ns >= %lld",
             strtoll(reply, NULL, 10));
    free(reply);
    return SJ_OK;
}

/* Writes the sessions that are new or have another version to temp.changed. Writes those whose rows
 * here are out of date to temp.gone. */
static sj_status list_changes(sj_cluster_mirror *mirror, sj_error *error)
{
    const sj_cluster_limits limits = {.rows = INT32_MAX, .time_ms = TIME_MS};
    bool is_cut = false;
    char sql[256];
    snprintf(sql, sizeof(sql), "SELECT session, toString(version) AS version FROM sessions%s",
             mirror->newest);
    SJ_TRY(sj_cluster_ask_into(mirror->target, sql, &limits, mirror->database, &is_cut, error));
    return run(mirror, sj_list_changes_sql, error);
}

/* Removes the sessions in temp.gone and everything that belongs to them. No other session uses
 * their modules. */
static sj_status forget_gone(sj_cluster_mirror *mirror, sj_error *error)
{
    return run(mirror, sj_forget_gone_sql, error);
}

/* Writes the next sessions to read to `*list`, as "'uuid','uuid'". Release with sqlite3_free.
 * `*list` is NULL if none are left. */
static sj_status next_chunk(sj_cluster_mirror *mirror, char **list, sj_error *error)
{
    sqlite3_stmt *row = NULL;
    char sql[160];
    snprintf(sql, sizeof(sql),
             "SELECT group_concat('''' || session || '''') FROM (SELECT session FROM temp.changed"
             " WHERE taken = 0 LIMIT %d)",
             (int)AT_ONCE);
    *list = NULL;
    if (sqlite3_prepare_v2(mirror->database, sql, -1, &row, NULL) == SQLITE_OK &&
        sqlite3_step(row) == SQLITE_ROW && sqlite3_column_type(row, 0) != SQLITE_NULL) {
        *list = sqlite3_mprintf("%s", (const char *)sqlite3_column_text(row, 0));
    }
    const int result = sqlite3_finalize(row);
    if (result != SQLITE_OK) {
        return fail_sql(mirror, error);
    }
    return run(
        mirror,
        "UPDATE temp.changed SET taken = 1 WHERE session IN (SELECT session FROM temp.changed"
        " WHERE taken = 0 LIMIT 500)",
        error);
}

static sj_status read_changed(sj_cluster_mirror *mirror, sj_error *error)
{
    char *list = NULL;
    sj_status status = SJ_OK;
    if (mirror->seen[0] == '\0') { /* the first time, one question reads all sessions */
        char listed[256];
        snprintf(listed, sizeof(listed), "SELECT session FROM sessions%s", mirror->newest);
        SJ_TRY(sj_cluster_copy_sessions(mirror->target, mirror->database,
                                        mirror->newest[0] != '\0' ? listed : NULL, error));
        SJ_TRY(run(mirror, "UPDATE temp.changed SET taken = 1", error));
    }
    while (status == SJ_OK && (status = next_chunk(mirror, &list, error)) == SJ_OK &&
           list != NULL) {
        status = sj_cluster_copy_sessions(mirror->target, mirror->database, list, error);
        sqlite3_free(list);
    }
    SJ_TRY(status);
    return run(mirror,
               "INSERT OR REPLACE INTO temp.mirrored SELECT session, version FROM temp.changed"
               " WHERE session IN (SELECT lower(hex(uuid)) FROM sessions);"
               "DELETE FROM devices WHERE device_id NOT IN (SELECT device_id FROM sessions)",
               error);
}

/* Sets `*is_there` to true if a query yields a row. ?1 is `value`. */
static sj_status find_row(sj_cluster_mirror *mirror, const char *sql, int64_t value, bool *is_there,
                          sj_error *error)
{
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(mirror->database, sql, -1, &row, NULL) != SQLITE_OK) {
        return fail_sql(mirror, error);
    }
    sqlite3_bind_int64(row, 1, value);
    *is_there = sqlite3_step(row) == SQLITE_ROW;
    return sqlite3_finalize(row) == SQLITE_OK ? SJ_OK : fail_sql(mirror, error);
}

/* Sets `*is_less` to true if the list of sessions, or the copied rows, lack sessions that `seen`
 * counts. */
static sj_status find_less(sj_cluster_mirror *mirror, const char *seen, bool *is_less,
                           sj_error *error)
{
    const int64_t counted = strtoll(seen, NULL, 10);
    const int64_t most = mirror->most_sessions;
    SJ_TRY(find_row(mirror, "SELECT 1 FROM temp.answer_size WHERE sessions < ?1",
                    counted < most ? counted : most, is_less, error));
    return *is_less ? SJ_OK
                    : find_row(mirror,
                               "SELECT 1 FROM temp.changed WHERE taken = ?1 AND session NOT IN"
                               " (SELECT session FROM temp.mirrored)",
                               1, is_less, error);
}

/* Makes the next refresh read the list again, even if the checksum is the same. */
static void forget_seen(sj_cluster_mirror *mirror)
{
    snprintf(mirror->seen, PRINT_BYTES, "less than it was");
}

/* Stores the checksum, unless the refresh is incomplete: a shard may have been unreachable for some
 * of the questions. Their answers may then lack marks and builds, too, and the next refresh reads
 * them again. */
static sj_status note_seen(sj_cluster_mirror *mirror, const char *seen, uint64_t answered,
                           sj_error *error)
{
    bool is_less = false;
    uint64_t answering = 0;
    SJ_TRY(find_less(mirror, seen, &is_less, error));
    SJ_TRY(sj_clickhouse_count_shards(mirror->target, &answering, error));
    mirror->is_torn = is_less || answering != answered;
    if (!mirror->is_torn) {
        snprintf(mirror->seen, PRINT_BYTES, "%s", seen);
        return SJ_OK;
    }
    forget_seen(mirror);
    return run(mirror,
               "DELETE FROM temp.mirrored WHERE session IN (SELECT session FROM temp.changed)",
               error);
}

static sj_status apply_changes(sj_cluster_mirror *mirror, sj_error *error)
{
    SJ_TRY(list_changes(mirror, error));
    SJ_TRY(run(mirror, "BEGIN IMMEDIATE", error));
    const sj_status status = forget_gone(mirror, error);
    if (status != SJ_OK) {
        sqlite3_exec(mirror->database, "ROLLBACK", NULL, NULL, NULL);
        return status;
    }
    SJ_TRY(run(mirror, "COMMIT", error));
    return read_changed(mirror, error);
}

static void say_engine(sj_cluster_mirror *mirror, const char *before, const char *line)
{
    pthread_mutex_lock(&mirror->engine_lock);
    snprintf(mirror->engine, sizeof(mirror->engine), "%s%s", before, line);
    pthread_mutex_unlock(&mirror->engine_lock);
}

/* Copies the changes of the cluster. `*answered` is the number of shards that answered before
 * the questions. */
static sj_status follow_once(sj_cluster_mirror *mirror, uint64_t *answered, sj_error *error)
{
    char seen[PRINT_BYTES];
    SJ_TRY(sj_clickhouse_count_shards(mirror->target, answered, error));
    SJ_TRY(read_seen(mirror, seen, error));
    if (strcmp(seen, mirror->seen) == 0) {
        return SJ_OK;
    }
    sj_status status = find_newest(mirror, seen, error);
    if (status == SJ_OK) {
        status = apply_changes(mirror, error);
    }
    if (status == SJ_OK) {
        status = note_seen(mirror, seen, *answered, error);
    }
    /* the database may already lack some sessions */
    if (status != SJ_OK && mirror->seen[0] != '\0') {
        forget_seen(mirror);
    }
    return status;
}

static sj_status refresh(sj_cluster_mirror *mirror, sj_error *error)
{
    char line[ENGINE_BYTES];
    uint64_t answered = 0;
    SJ_TRY(sj_forward_clickhouse.check(mirror->target, error));
    SJ_TRY(follow_once(mirror, &answered, error));
    if (mirror->is_torn) { /* try again now: a command does not refresh later */
        SJ_TRY(follow_once(mirror, &answered, error));
    }
    SJ_TRY(sj_clickhouse_explain(mirror->target, answered, line, sizeof(line), error));
    if (mirror->is_torn) {
        const size_t used = strlen(line);
        snprintf(line + used, sizeof(line) - used,
                 "; INCOMPLETE: shards came or went while the sessions were read");
    }
    if (mirror->newest[0] != '\0') {
        const size_t used = strlen(line);
        snprintf(line + used, sizeof(line) - used, "; the newest %lld are looked at",
                 (long long)mirror->most_sessions);
    }
    say_engine(mirror, "", line);
    return SJ_OK;
}

sj_status sj_cluster_mirror_refresh(sj_cluster_mirror *mirror, sj_error *error)
{
    sj_error why = {0};
    pthread_mutex_lock(&mirror->lock);
    const sj_status status = refresh(mirror, &why);
    if (status != SJ_OK) {
        say_engine(mirror, "NOT AS IT IS NOW: ", why.text);
    }
    pthread_mutex_unlock(&mirror->lock);
    return status == SJ_OK ? SJ_OK : sj_fail(error, status, "%s", why.text);
}

/* Sets `*has` to true if the session has sums. Its row in `profiles` is written last. */
static sj_status has_sums(sj_cluster_mirror *mirror, int64_t session_id, bool *has, sj_error *error)
{
    return find_row(mirror, "SELECT 1 FROM profiles WHERE session_id = ?1", session_id, has, error);
}

/* Copies the sums of a session. Converts refusals of the cluster to SJ_EIO, because the caller's
 * set is not wrong. */
static sj_status copy_sums(sj_cluster_mirror *mirror, int64_t session_id, sj_error *error)
{
    sj_error why = {0};
    const sj_status status =
        sj_cluster_copy_sums(mirror->target, mirror->database, session_id, &why);
    if (status == SJ_OK) {
        return SJ_OK;
    }
    const bool is_refused = status == SJ_EINVAL || status == SJ_ENOTFOUND;
    return sj_fail(error, is_refused ? SJ_EIO : status, "%s", why.text);
}

static sj_status note_unknown(sj_cluster_mirror *mirror, sj_error *error)
{
    int64_t unknown = 0;
    SJ_TRY(sj_cluster_copy_unknown(mirror->database, &unknown, error));
    pthread_mutex_lock(&mirror->engine_lock);
    mirror->unknown = unknown;
    pthread_mutex_unlock(&mirror->engine_lock);
    return SJ_OK;
}

static sj_status need(sj_cluster_mirror *mirror, const char *text, sj_error *error)
{
    sj_session_set set = {0};
    bool has = false;
    SJ_TRY(sj_session_set_read(mirror->database, text, SJ_SESSION_SET_MAX_SAMPLES, &set, error));
    sj_status status = SJ_OK;
    for (size_t i = 0; i < set.count && status == SJ_OK; ++i) {
        status = has_sums(mirror, set.samples[i].session_id, &has, error);
        if (status == SJ_OK && !has) {
            status = copy_sums(mirror, set.samples[i].session_id, error);
        }
    }
    sj_session_set_deinit(&set);
    return status == SJ_OK ? note_unknown(mirror, error) : status;
}

sj_status sj_cluster_mirror_need(sj_cluster_mirror *mirror, const char *set, sj_error *error)
{
    pthread_mutex_lock(&mirror->lock);
    const sj_status status = need(mirror, set, error);
    pthread_mutex_unlock(&mirror->lock);
    return status;
}

sj_status sj_cluster_mirror_ask(sj_cluster_mirror *mirror, const char *sql,
                                const sj_cluster_limits *limits, sqlite3 **reply, bool *is_cut,
                                sj_error *error)
{
    pthread_mutex_lock(&mirror->lock);
    const sj_status status = sj_cluster_ask(mirror->target, sql, limits, reply, is_cut, error);
    pthread_mutex_unlock(&mirror->lock);
    return status;
}

void sj_cluster_mirror_engine(sj_cluster_mirror *mirror, char *line, size_t capacity)
{
    pthread_mutex_lock(&mirror->engine_lock);
    snprintf(line, capacity, "%s", mirror->engine);
    const size_t used = strlen(line);
    if (mirror->unknown != 0) {
        snprintf(line + used, capacity - used, "; " SJ_CLUSTER_COPY_UNKNOWN,
                 (long long)mirror->unknown);
    }
    pthread_mutex_unlock(&mirror->engine_lock);
}

static sj_status open_parts(sj_cluster_mirror *mirror, const sj_forward_options *cluster,
                            const char *path, sj_error *error)
{
    SJ_TRY(sj_forward_clickhouse.open(cluster, &mirror->target, error));
    SJ_TRY(sj_forward_clickhouse.check(mirror->target, error));
    SJ_TRY(sj_database_open(path, SJ_DATABASE_CREATE, &mirror->database, error));
    SJ_TRY(run(mirror, sj_create_mirror_sql, error));
    return sj_cluster_mirror_refresh(mirror, error);
}

sj_status sj_cluster_mirror_open(const sj_forward_options *cluster, const char *path,
                                 sj_cluster_mirror **mirror, sj_error *error)
{
    sj_cluster_mirror *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    pthread_mutex_init(&made->lock, NULL);
    pthread_mutex_init(&made->engine_lock, NULL);
    made->most_sessions = cluster->most_sessions != 0 ? cluster->most_sessions : MOST_SESSIONS;
    const sj_status status = open_parts(made, cluster, path, error);
    if (status != SJ_OK) {
        sj_cluster_mirror_close(made);
        return status;
    }
    *mirror = made;
    return SJ_OK;
}

void sj_cluster_mirror_close(sj_cluster_mirror *mirror)
{
    if (mirror == NULL) {
        return;
    }
    sj_forward_clickhouse.close(mirror->target);
    sqlite3_close(mirror->database);
    pthread_mutex_destroy(&mirror->lock);
    pthread_mutex_destroy(&mirror->engine_lock);
    free(mirror);
}
