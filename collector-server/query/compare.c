/* Design notes. A row has a symbol key, and SJ_MEASURES values per sample. Row 0 is the sum of all
 * rows. The other rows form a tree of call paths, or a list of functions. */
#include "collector-server/query/compare_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double default_least_effect = 0.02;
static const double default_least_share = 0.005;

sj_compare_of sj_compare_of_find(const char *name)
{
    static const char *const names[SJ_COMPARE_OF] = {
        [SJ_COMPARE_TIME] = "time", [SJ_COMPARE_CPU] = "cpu", [SJ_COMPARE_ALLOCATED] = "allocated"};
    for (int of = 0; of < SJ_COMPARE_OF; of++) {
        if (strcmp(names[of], name) == 0) {
            return (sj_compare_of)of;
        }
    }
    return SJ_COMPARE_OF;
}

const char *sj_compare_verdict_name(sj_compare_verdict verdict, sj_compare_of of)
{
    static const char *const names[] = {
        [SJ_COMPARE_SAME] = "same",     [SJ_COMPARE_SLOWER] = "slower",
        [SJ_COMPARE_FASTER] = "faster", [SJ_COMPARE_INCONCLUSIVE] = "inconclusive",
        [SJ_COMPARE_ADDED] = "added",   [SJ_COMPARE_REMOVED] = "removed",
        [SJ_COMPARE_MINOR] = "minor",   [SJ_COMPARE_UNMATCHED] = "unmatched",
    };
    if (of == SJ_COMPARE_ALLOCATED && verdict == SJ_COMPARE_SLOWER) {
        return "more";
    }
    return of == SJ_COMPARE_ALLOCATED && verdict == SJ_COMPARE_FASTER ? "less" : names[verdict];
}

void sj_compare_free(sj_compare *compare)
{
    if (compare == NULL) {
        return;
    }
    sj_session_set_deinit(&compare->sets[0]);
    sj_session_set_deinit(&compare->sets[1]);
    free(compare->rows);
    free(compare->values);
    free(compare->slots);
    free(compare->scratch);
    free(compare);
}

const sj_compare_row *sj_compare_rows(const sj_compare *compare, size_t *count)
{
    *count = compare->count;
    return compare->rows;
}

int64_t sj_compare_folded_calls(const sj_compare *compare, int side)
{
    return compare->folded_calls[side];
}

size_t sj_compare_samples(const sj_compare *compare, int side, int64_t *lost_calls)
{
    *lost_calls = compare->lost_calls[side];
    return compare->sets[side].count;
}

/* Fails with SJ_ENOTFOUND if a session has calls but no sums of them: it must not count as a
 * session without calls. */
static sj_status check_sums(const sj_compare *compare, size_t sample, const sj_sample *of,
                            sqlite3_stmt *session, sj_error *error)
{
    if (of->windowed || *sj_compare_value(compare, 0, sample, SJ_MEASURE_CALLS) > 0 ||
        sqlite3_column_int64(session, 2) == 0) {
        return SJ_OK;
    }
    const char *reason = (const char *)sqlite3_column_text(session, 3);
    return sj_fail(error, SJ_ENOTFOUND, "session %lld has calls, but no sums of them%s%s",
                   (long long)of->session_id, reason[0] != '\0' ? ": " : "", reason);
}

static sj_status read_session(sj_compare *compare, int side, size_t place, sqlite3_stmt *session,
                              sj_error *error)
{
    const sj_sample *samples = compare->sets[side].samples;
    if (place != 0 && samples[place].session_id == samples[place - 1].session_id) {
        return SJ_OK; /* another mark of the same session */
    }
    sqlite3_bind_int64(session, 1, samples[place].session_id);
    sj_status status = SJ_OK;
    if (sqlite3_step(session) == SQLITE_ROW) {
        compare->lost_calls[side] += sqlite3_column_int64(session, 0);
        compare->folded_calls[side] += sqlite3_column_int64(session, 1);
        const size_t first = side == 0 ? 0 : compare->sets[0].count;
        status = check_sums(compare, first + place, &samples[place], session, error);
    }
    sqlite3_reset(session);
    return status;
}

/* Adds up the lost and the folded calls of a side's sessions, and checks their sums. The values of
 * row 0 must be known. */
static sj_status read_sessions(sj_compare *compare, sqlite3 *database, int side, sj_error *error)
{
    static const char sql[] =
        "SELECT lost_calls, folded_calls, stored_calls, coalesce(quarantine_reason, '') FROM "
        "sessions WHERE session_id = ?1";
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) {
        return sj_fail(error, SJ_EIO, "cannot read the sessions to compare: %s",
                       sqlite3_errmsg(database));
    }
    sj_status status = SJ_OK;
    for (size_t i = 0; status == SJ_OK && i < compare->sets[side].count; ++i) {
        status = read_session(compare, side, i, statement, error);
    }
    sqlite3_finalize(statement);
    return status;
}

void sj_compare_summarize(sj_compare *compare, size_t number)
{
    sj_compare_row *row = &compare->rows[number];
    for (int side = 0; side < 2; ++side) {
        const size_t count =
            sj_compare_copy_values(compare, number, side, SJ_MEASURE_CALLS, compare->scratch);
        double sum = 0;
        row->least_calls[side] = row->most_calls[side] = compare->scratch[0];
        for (size_t i = 0; i < count; ++i) {
            const double calls = compare->scratch[i];
            sum += calls;
            row->sessions[side] += calls > 0;
            row->least_calls[side] = fmin(row->least_calls[side], calls);
            row->most_calls[side] = fmax(row->most_calls[side], calls);
        }
        row->calls[side] = sum / (double)count;
        sj_compare_copy_values(compare, number, side, SJ_MEASURE_TOTAL, compare->scratch);
        row->total_ns[side] = sj_median(compare->scratch, count);
        sj_compare_copy_values(compare, number, side, SJ_MEASURE_SELF, compare->scratch);
        row->self_ns[side] = sj_median(compare->scratch, count);
        sj_compare_copy_values(compare, number, side, SJ_MEASURE_TYPICAL, compare->scratch);
        row->typical_ns[side] = sj_median(compare->scratch, count);
        sj_compare_copy_values(compare, number, side, SJ_MEASURE_COST, compare->scratch);
        row->costs[side] = sj_median(compare->scratch, count);
    }
}

static sj_status compare_sides(sj_compare *compare, const sj_compare_side sides[2], sj_error *error)
{
    for (int side = 0; side < 2; ++side) {
        SJ_TRY(sj_session_set_read(sides[side].database, sides[side].set,
                                   SJ_SESSION_SET_MAX_SAMPLES, &compare->sets[side], error));
    }
    uint32_t row_0;
    compare->samples = compare->sets[0].count + compare->sets[1].count;
    compare->scratch = malloc(compare->samples * sizeof(double));
    if (compare->scratch == NULL || sj_compare_add_row(compare, 0, 0, &row_0) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "no memory for the comparison");
    }
    for (int side = 0; side < 2; ++side) {
        SJ_TRY(sj_compare_measure(compare, sides[side].database, side, error));
        SJ_TRY(sj_compare_read_errors(compare, sides[side].database, side, error));
        SJ_TRY(read_sessions(compare, sides[side].database, side, error));
    }
    for (size_t i = 0; i < compare->count; ++i) {
        sj_compare_summarize(compare, i);
    }
    SJ_TRY(sj_compare_match_nameless(compare, sides, error));
    return sj_compare_judge(compare) == SJ_OK
               ? SJ_OK
               : sj_fail(error, SJ_ENOMEM, "no memory for the comparison");
}

sj_status sj_compare_run(const sj_compare_side sides[2], const sj_compare_options *options,
                         sj_compare **compare, sj_error *error)
{
    sj_compare *compare_new = calloc(1, sizeof(*compare_new));
    if (compare_new == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory for the comparison");
    }
    compare_new->options = *options;
    if (compare_new->options.least_effect <= 0) {
        compare_new->options.least_effect = default_least_effect;
    }
    if (compare_new->options.least_share <= 0) {
        compare_new->options.least_share = default_least_share;
    }
    const sj_status status = compare_sides(compare_new, sides, error);
    if (status != SJ_OK) {
        sj_compare_free(compare_new);
        return status;
    }
    *compare = compare_new;
    return SJ_OK;
}
