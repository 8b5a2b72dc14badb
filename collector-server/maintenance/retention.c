#include "collector-server/maintenance/retention.h"

#include "collector-server/maintenance/removal.h"
#include "collector-server/query/session_set.h"
#include "proto/base/progress.h"
#include "proto/base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct candidate {
    int64_t session_id;
    /* arrival of the last frame, by the collector's clock, because a device's may be wrong */
    int64_t received_ns;
    int64_t bytes;
    bool kept; /* pinned, recording or annotated */
    bool is_old;
    bool is_due;
} candidate;

/* Parses the limit. It must have a unit, because a bare number could be an age or a size. */
static bool read_limit(const char *text, sj_retention_rule *rule)
{
    uint64_t age_ns = 0;
    uint64_t bytes = 0;
    const char last = text[0] != '\0' ? text[strlen(text) - 1] : '0';
    if ((last >= '0' && last <= '9') ||
        (!sj_duration_parse(text, &age_ns) && !sj_size_parse(text, &bytes))) {
        return false;
    }
    rule->max_age_ns = (int64_t)age_ns;
    rule->max_bytes = (int64_t)bytes;
    return age_ns != 0 || bytes != 0;
}

sj_status sj_retention_rule_read(const char *text, sj_retention_rule *rule, sj_error *error)
{
    const char *equals = strrchr(text, '=');
    *rule = (sj_retention_rule){0};
    if (equals != NULL && equals != text && (size_t)(equals - text) < sizeof(rule->set)) {
        memcpy(rule->set, text, (size_t)(equals - text));
        if (read_limit(equals + 1, rule)) {
            return SJ_OK;
        }
    }
    return sj_fail(
        error, SJ_EINVAL,
        "'%s' is not a rule: give SET=LIMIT with an age (30d, 12h) or a size (50G, 500M), "
        "as in all=30d or tag:nightly=7d",
        text);
}

static int compare_age(const void *left, const void *right)
{
    const candidate *a = left;
    const candidate *b = right;
    return (a->received_ns > b->received_ns) - (a->received_ns < b->received_ns);
}

/* Reads the sessions of a set, sorted by age, oldest first. */
static sj_status read_candidates(sqlite3 *database, const sj_session_set *set,
                                 candidate *candidates, sj_error *error)
{
    static const char sql[] =
        "SELECT received_realtime_ns, stored_bytes, pinned <> 0 OR state = 'recording' OR EXISTS "
        "(SELECT 1 FROM annotations AS a WHERE a.session_id = s.session_id) FROM sessions AS s "
        "WHERE session_id = ?1";
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) {
        return sj_fail(error, SJ_EIO, "cannot read the sessions: %s", sqlite3_errmsg(database));
    }
    for (size_t i = 0; i < set->count; ++i) {
        candidates[i] = (candidate){.session_id = set->samples[i].session_id, .kept = true};
        if (i != 0 && set->samples[i - 1].session_id == candidates[i].session_id) {
            continue; /* another mark of the same session */
        }
        sqlite3_bind_int64(statement, 1, candidates[i].session_id);
        if (sqlite3_step(statement) == SQLITE_ROW) {
            candidates[i].received_ns = sqlite3_column_int64(statement, 0);
            candidates[i].bytes = sqlite3_column_int64(statement, 1);
            candidates[i].kept = sqlite3_column_int(statement, 2) != 0;
        }
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    qsort(candidates, set->count, sizeof(*candidates), compare_age);
    return SJ_OK;
}

/* Marks the sessions that must be removed, oldest first. Returns their number. */
static size_t find_due(const sj_retention_rule *rule, candidate *candidates, size_t count)
{
    struct timespec now;
    int64_t bytes = 0;
    size_t due = 0;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    for (size_t i = 0; i < count; ++i) {
        bytes += candidates[i].bytes;
    }
    for (size_t i = 0; i < count; ++i) {
        candidate *one = &candidates[i];
        const bool too_much = rule->max_bytes > 0 && bytes > rule->max_bytes;
        one->is_old = rule->max_age_ns > 0 && now_ns - one->received_ns > rule->max_age_ns;
        one->is_due = !one->kept && (one->is_old || too_much);
        if (one->is_due) {
            bytes -= one->bytes;
            due++;
        }
    }
    return due;
}

static sj_status remove_due(sqlite3 *database, const sj_retention_rule *rule, const candidate *one,
                            sj_error *error)
{
    char reason[SJ_RETENTION_SET_BYTES + 32];
    snprintf(reason, sizeof(reason), "retention: %s of %s", one->is_old ? "age" : "size",
             rule->set);
    return sj_session_remove(database, one->session_id, reason, false, error);
}

static sj_status apply_to(sqlite3 *database, const sj_retention_rule *rule, candidate *candidates,
                          size_t count, sj_retention_verdict verdict, void *context,
                          int64_t *removed, sj_error *error)
{
    sj_status status = SJ_OK;
    const sj_progress_work work = sj_progress_begin_list(find_due(rule, candidates, count));
    for (size_t i = 0; i < count && status == SJ_OK; ++i) {
        const candidate *one = &candidates[i];
        if (!one->is_due) {
            continue;
        }
        if (verdict == NULL || verdict(context, one->session_id, one->bytes)) {
            status = remove_due(database, rule, one, error);
            *removed += status == SJ_OK;
        }
        sj_progress_step(work);
    }
    sj_progress_end(work);
    return status;
}

sj_status sj_retention_apply(sqlite3 *database, const sj_retention_rule *rule,
                             sj_retention_verdict verdict, void *context, int64_t *removed,
                             sj_error *error)
{
    sj_session_set set;
    *removed = 0;
    sj_status status = sj_session_set_read(database, rule->set, SIZE_MAX, &set, error);
    if (status == SJ_ENOTFOUND) {
        return SJ_OK;
    }
    if (status != SJ_OK) {
        return status;
    }
    candidate *candidates = malloc(set.count * sizeof(*candidates));
    status = candidates == NULL ? sj_fail(error, SJ_ENOMEM, "no memory for retention")
                                : read_candidates(database, &set, candidates, error);
    if (status == SJ_OK) {
        status = apply_to(database, rule, candidates, set.count, verdict, context, removed, error);
    }
    free(candidates);
    sj_session_set_deinit(&set);
    return status;
}
