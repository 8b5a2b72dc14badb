/* The SQL functions format_duration(ns) and format_bytes(bytes), which return texts for people. */
#include "collector-server/query/query.h"
#include "collector-server/query/query_state.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct duration_unit {
    const char *name;
    double ns;
} duration_unit;

static const char *format_below_minute(double ns, bool negative, char *text)
{
    static const duration_unit units[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}};
    const char *sign = negative ? "-" : "";
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); ++i) {
        /* 999.95 us would be printed as 1000.0 us: use the next unit. */
        if (ns >= units[i].ns * 0.9995) {
            const double value = ns / units[i].ns;
            const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
            snprintf(text, SJ_DURATION_TEXT_BYTES, "%s%.*f %s", sign, decimals, value,
                     units[i].name);
            return text;
        }
    }
    snprintf(text, SJ_DURATION_TEXT_BYTES, "%s%.0f ns", sign, ns);
    return text;
}

const char *sj_format_duration(int64_t duration_ns, char text[SJ_DURATION_TEXT_BYTES])
{
    const bool negative = duration_ns < 0;
    const uint64_t ns = negative ? -(uint64_t)duration_ns : (uint64_t)duration_ns;
    const uint64_t seconds = (ns + UINT64_C(500000000)) / UINT64_C(1000000000);
    if (ns < UINT64_C(59950000000)) {
        return format_below_minute((double)ns, negative, text);
    }
    const char *sign = negative ? "-" : "";
    if (seconds < 3600) {
        snprintf(text, SJ_DURATION_TEXT_BYTES, "%s%" PRIu64 " min %02" PRIu64 " s", sign,
                 seconds / 60, seconds % 60);
    } else {
        snprintf(text, SJ_DURATION_TEXT_BYTES, "%s%" PRIu64 " h %02" PRIu64 " min", sign,
                 seconds / 3600, seconds / 60 % 60);
    }
    return text;
}

static void format_duration(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    char text[SJ_DURATION_TEXT_BYTES];
    if (sqlite3_value_numeric_type(argv[0]) != SQLITE_INTEGER &&
        sqlite3_value_numeric_type(argv[0]) != SQLITE_FLOAT) {
        return; /* not a number: the result is NULL */
    }
    sj_format_duration(sqlite3_value_int64(argv[0]), text);
    sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

const char *sj_format_bytes(int64_t bytes, char text[SJ_BYTES_TEXT_BYTES])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    enum { UNIT = 1024, UNITS = sizeof(units) / sizeof(units[0]) };
    const char *sign = bytes < 0 ? "-" : "";
    double size = bytes < 0 ? -(double)bytes : (double)bytes;
    size_t unit = 0;
    if (size < UNIT) {
        snprintf(text, SJ_BYTES_TEXT_BYTES, "%s%.0f B", sign, size);
        return text;
    }
    size /= UNIT;
    while (size >= UNIT && unit + 1 < UNITS) {
        size /= UNIT;
        unit++;
    }
    snprintf(text, SJ_BYTES_TEXT_BYTES, "%s%.1f %s", sign, size, units[unit]);
    return text;
}

static void format_bytes(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    char text[SJ_BYTES_TEXT_BYTES];
    if (sqlite3_value_numeric_type(argv[0]) != SQLITE_INTEGER &&
        sqlite3_value_numeric_type(argv[0]) != SQLITE_FLOAT) {
        return; /* not a number: the result is NULL */
    }
    sj_format_bytes(sqlite3_value_int64(argv[0]), text);
    sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

int sj_register_durations(sj_query_state *state)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    const int result = sqlite3_create_function_v2(state->database, "format_duration", 1, flags,
                                                  NULL, format_duration, NULL, NULL, NULL);
    return result == SQLITE_OK
               ? sqlite3_create_function_v2(state->database, "format_bytes", 1, flags, NULL,
                                            format_bytes, NULL, NULL, NULL)
               : result;
}
