/* The SQL functions histogram_quantile(blob, q [, session_id [, min_ns, max_ns]]) and
 * histogram_merge(blob [, session_id]).
 *
 * Design notes. Stored histograms are in ticks of their session's clock. With a session_id, the
 * result is in nanoseconds; else it has the unit of the blob. min_ns and max_ns limit the quantile.
 * histogram_merge with a session_id converts the middle of each bin to nanoseconds, so that
 * histograms of devices with different clocks can be added. */
#include "collector-server/query/query_state.h"
#include "collector-server/query/session_clock.h"
#include "proto/callgraph/histogram.h"

#include <stdbool.h>

static void fail_status(sqlite3_context *context, sj_status status)
{
    if (status == SJ_ENOMEM) {
        sqlite3_result_error_nomem(context);
    } else {
        sqlite3_result_error(context, "not a histogram of durations, or of a newer version", -1);
    }
}

/* Reads the clock of the session whose id is in `value`. On an error, sets the result and returns
 * false. */
static bool read_scale(sqlite3_context *context, sqlite3_value *value, sj_tick_scale *scale)
{
    const sj_query_state *state = sqlite3_user_data(context);
    sqlite3_stmt *statement = NULL;
    uint64_t started_ticks = 0;
    const int result = sj_session_clock_read(state->database, &statement,
                                             sqlite3_value_int64(value), scale, &started_ticks);
    sqlite3_finalize(statement);
    if (result == SQLITE_NOTFOUND) {
        sqlite3_result_error(context, "no session with the id given to the histogram function", -1);
    } else if (result == SJ_SCAN_NO_CLOCK) {
        sqlite3_result_error(context, "the session's clock makes no sense", -1);
    } else if (result != SQLITE_OK) {
        sqlite3_result_error_code(context, result);
    }
    return result == SQLITE_OK;
}

/* The clock of the latest session, cached for later rows of the statement. */
typedef struct kept_scale {
    int64_t session_id;
    sj_tick_scale scale;
} kept_scale;

/* Finds the clock of a session, like read_scale. Attaches it to the quantile argument, because
 * SQLite keeps data that is attached to a constant argument for the whole statement. */
static bool find_scale(sqlite3_context *context, sqlite3_value *session, sj_tick_scale *scale)
{
    enum { QUANTILE = 1 };
    const int64_t session_id = sqlite3_value_int64(session);
    const kept_scale *kept = sqlite3_get_auxdata(context, QUANTILE);
    if (kept != NULL && kept->session_id == session_id) {
        *scale = kept->scale;
        return true;
    }
    if (!read_scale(context, session, scale)) {
        return false;
    }
    kept_scale *attached = sqlite3_malloc(sizeof(*attached));
    if (attached != NULL) {
        *attached = (kept_scale){.session_id = session_id, .scale = *scale};
        sqlite3_set_auxdata(context, QUANTILE, attached, sqlite3_free);
    }
    return true;
}

static sj_slice read_blob(sqlite3_value *value)
{
    const void *data = sqlite3_value_blob(value); /* before the size: it may convert the value */
    return (sj_slice){data, (size_t)sqlite3_value_bytes(value)};
}

static void histogram_quantile(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL) {
        return;
    }
    const double q = sqlite3_value_double(argv[1]);
    if (!(q >= 0.0 && q <= 1.0)) {
        sqlite3_result_error(context, "a quantile lies between 0 and 1", -1);
        return;
    }
    sj_tick_scale scale;
    if (argc >= 3 && !find_scale(context, argv[2], &scale)) {
        return;
    }
    sj_histogram histogram = {0};
    const sj_status status = sj_histogram_decode(read_blob(argv[0]), &histogram);
    if (status != SJ_OK) {
        fail_status(context, status);
    } else if (histogram.octave_count != 0) {
        const sj_quantile found = sj_histogram_find_quantile(&histogram, q);
        const bool has_ends = argc == 5 && sqlite3_value_type(argv[3]) != SQLITE_NULL &&
                              sqlite3_value_type(argv[4]) != SQLITE_NULL;
        const int64_t value =
            argc >= 3 ? sj_ticks_to_ns(&scale, found.value) : (sqlite3_int64)found.value;
        sqlite3_result_int64(context, has_ends ? sj_quantile_within(&found, value,
                                                                    sqlite3_value_int64(argv[3]),
                                                                    sqlite3_value_int64(argv[4]))
                                               : value);
    }
    sj_histogram_deinit(&histogram);
}

typedef struct merge_state {
    bool used;
    int64_t session_id; /* session of the clock; valid if has_scale */
    bool has_scale;
    sj_tick_scale scale;
    sj_histogram sum;
} merge_state;

static sj_status add_scaled(sj_histogram *sum, const sj_histogram *part, const sj_tick_scale *scale)
{
    for (uint32_t octave = 0; octave < part->octave_count; ++octave) {
        for (uint32_t sub = 0; sub < 1u << SJ_HISTOGRAM_SUB_BITS; ++sub) {
            const uint64_t count = part->octaves[octave].count[sub];
            if (count == 0) {
                continue;
            }
            const uint32_t bin = ((part->first_octave + octave) << SJ_HISTOGRAM_SUB_BITS) + sub;
            const uint64_t low = sj_histogram_low(bin);
            const uint64_t middle = low + (sj_histogram_high(bin) - low) / 2;
            SJ_TRY(sj_histogram_add(sum, (uint64_t)sj_ticks_to_ns(scale, middle), count));
        }
    }
    return SJ_OK;
}

static void merge_step(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    merge_state *merge = sqlite3_aggregate_context(context, sizeof(*merge));
    if (merge == NULL) {
        sqlite3_result_error_nomem(context);
        return;
    }
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL) {
        return;
    }
    if (argc == 2) {
        const int64_t session_id = sqlite3_value_int64(argv[1]);
        if (!merge->has_scale || merge->session_id != session_id) {
            merge->has_scale = false;
            if (!read_scale(context, argv[1], &merge->scale)) {
                return;
            }
            merge->has_scale = true;
            merge->session_id = session_id;
        }
    }
    sj_histogram part = {0};
    sj_status status = sj_histogram_decode(read_blob(argv[0]), &part);
    if (status == SJ_OK) {
        status = argc == 2 ? add_scaled(&merge->sum, &part, &merge->scale)
                           : sj_histogram_merge(&merge->sum, &part);
    }
    sj_histogram_deinit(&part);
    merge->used = true;
    if (status != SJ_OK) {
        fail_status(context, status);
    }
}

void sj_result_histogram(sqlite3_context *context, const sj_histogram *histogram)
{
    const size_t bound = sj_histogram_encoded_bound(histogram);
    uint8_t *output = sqlite3_malloc64(bound);
    if (output == NULL) {
        sqlite3_result_error_nomem(context);
        return;
    }
    const size_t size = sj_histogram_encode(histogram, output, bound);
    sqlite3_result_blob64(context, output, size, sqlite3_free);
}

static void merge_final(sqlite3_context *context)
{
    merge_state *merge = sqlite3_aggregate_context(context, 0);
    if (merge == NULL) {
        return; /* no rows: the result is NULL */
    }
    if (merge->used) {
        sj_result_histogram(context, &merge->sum);
    }
    sj_histogram_deinit(&merge->sum);
}

int sj_register_histograms(sj_query_state *state)
{
    const int flags = SQLITE_UTF8;
    int result = SQLITE_OK;
    static const int counts[] = {2, 3, 5};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]) && result == SQLITE_OK; ++i) {
        result = sqlite3_create_function_v2(state->database, "histogram_quantile", counts[i], flags,
                                            sj_query_state_hold(state), histogram_quantile, NULL,
                                            NULL, sj_query_state_release);
    }
    for (int argc = 1; argc <= 2 && result == SQLITE_OK; ++argc) {
        result = sqlite3_create_function_v2(state->database, "histogram_merge", argc, flags,
                                            sj_query_state_hold(state), NULL, merge_step,
                                            merge_final, sj_query_state_release);
    }
    return result;
}
