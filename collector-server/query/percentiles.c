/* The SQL aggregates percentile(value, p) and histogram(value), for numbers from 0 on. They count
 * values in the bins of stored histograms, so memory does not depend on the number of values. */
#include "collector-server/query/query_state.h"
#include "proto/callgraph/histogram.h"

#include <stdbool.h>

typedef struct value_bins {
    bool used; /* a value was added */
    double percent;
    int64_t least, most; /* valid if used */
    sj_histogram bins;
} value_bins;

/* Adds a value; ignores NULL. Returns NULL after setting an error. */
static value_bins *add_value(sqlite3_context *context, sqlite3_value *value)
{
    value_bins *state = sqlite3_aggregate_context(context, sizeof(*state));
    if (state == NULL) {
        sqlite3_result_error_nomem(context);
        return NULL;
    }
    const int type = sqlite3_value_numeric_type(value);
    if (type == SQLITE_NULL) {
        return state;
    }
    const int64_t number = sqlite3_value_int64(value);
    if ((type != SQLITE_INTEGER && type != SQLITE_FLOAT) || number < 0) {
        sqlite3_result_error(
            context,
            "percentile() and histogram() take numbers from 0 on, as durations and "
            "counts are",
            -1);
        return NULL;
    }
    state->least = state->used && state->least < number ? state->least : number;
    state->most = state->used && state->most > number ? state->most : number;
    state->used = true;
    if (sj_histogram_add(&state->bins, (uint64_t)number, 1) != SJ_OK) {
        sqlite3_result_error_nomem(context);
        return NULL;
    }
    return state;
}

static void percentile_step(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    value_bins *state = add_value(context, argv[0]);
    if (state == NULL) {
        return;
    }
    state->percent = sqlite3_value_double(argv[1]);
    if (sqlite3_value_numeric_type(argv[1]) == SQLITE_TEXT ||
        !(state->percent >= 0.0 && state->percent <= 100.0)) {
        sqlite3_result_error(context, "a percentile lies between 0 and 100", -1);
    }
}

static void percentile_final(sqlite3_context *context)
{
    value_bins *state = sqlite3_aggregate_context(context, 0);
    if (state != NULL && state->used) {
        const sj_quantile found = sj_histogram_find_quantile(&state->bins, state->percent / 100);
        sqlite3_result_int64(
            context, sj_quantile_within(&found, (int64_t)found.value, state->least, state->most));
    }
    if (state != NULL) {
        sj_histogram_deinit(&state->bins);
    }
}

static void histogram_step(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    add_value(context, argv[0]);
}

static void histogram_final(sqlite3_context *context)
{
    value_bins *state = sqlite3_aggregate_context(context, 0);
    if (state == NULL) {
        return; /* no rows: the result is NULL */
    }
    if (state->used) {
        sj_result_histogram(context, &state->bins);
    }
    sj_histogram_deinit(&state->bins);
}

int sj_register_percentiles(sj_query_state *state)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    const int result = sqlite3_create_function_v2(state->database, "percentile", 2, flags, NULL,
                                                  NULL, percentile_step, percentile_final, NULL);
    return result != SQLITE_OK
               ? result
               : sqlite3_create_function_v2(state->database, "histogram", 1, flags, NULL, NULL,
                                            histogram_step, histogram_final, NULL);
}
