#include "collector-server/cli/zombie_coverage.h"

#include "proto/base/units.h"
#include "schema/queries/cli/zombies.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The columns of the statement, in their order. */
static const struct {
    const char *name;
    size_t offset;
} sums[] = {
#define SUM(name)                                                                                  \
    {                                                                                              \
#name, offsetof(sj_zombie_coverage, name)                                                  \
    }
    SUM(allocations), SUM(guarded), SUM(recycled), SUM(not_sampled), SUM(bad_size), SUM(no_block),
    SUM(over_memory), SUM(refused), SUM(delayed),  SUM(kept),        SUM(not_kept)
#undef SUM
};

bool sj_zombie_coverage_read(sqlite3 *database, int64_t session_id, sj_zombie_coverage *coverage)
{
    sqlite3_stmt *row = NULL;
    *coverage = (sj_zombie_coverage){0};
    if (sqlite3_prepare_v2(database, sj_zombie_coverage_sql, -1, &row, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, session_id);
        if (sqlite3_step(row) == SQLITE_ROW) {
            for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
                *(int64_t *)(void *)((char *)coverage + sums[i].offset) =
                    sqlite3_column_int64(row, (int)i);
            }
        }
    }
    sqlite3_finalize(row);
    return coverage->allocations + coverage->delayed + coverage->kept + coverage->not_kept != 0;
}

void sj_zombie_coverage_json(FILE *file, const sj_zombie_coverage *coverage)
{
    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
        const int64_t *sum =
            (const int64_t *)(const void *)((const char *)coverage + sums[i].offset);
        fprintf(file, "%s\"%s\": %lld", i == 0 ? "{" : ", ", sums[i].name, (long long)*sum);
    }
    fputc('}', file);
}

double sj_zombie_coverage_percent(const sj_zombie_coverage *coverage)
{
    return coverage->allocations != 0
               ? 100.0 * (double)coverage->guarded / (double)coverage->allocations
               : 0;
}

/* Returns a share in percent as text. "0" means none and "100" means all; other shares are not
 * rounded to these. */
static const char *percent_text(int64_t part, int64_t whole, char text[16])
{
    const double percent = 100.0 * (double)part / (double)whole;
    if (part != 0 && percent < 0.1) {
        return "less than 0.1 %";
    }
    if (part != whole && percent > 99.9) {
        return "more than 99.9 %";
    }
    snprintf(text, 16, percent < 10 || percent > 99 ? "%.3g %%" : "%.0f %%", percent);
    return text;
}

static __attribute__((format(printf, 2, 3))) void append(char *text, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, SJ_ZOMBIE_COVERAGE_BYTES - used, format, arguments);
    va_end(arguments);
}

static void append_reason(char *text, const sj_zombie_coverage *coverage, int64_t missed,
                          const char *reason)
{
    char percent[16];
    if (missed != 0) {
        append(text, "; %s %s", percent_text(missed, coverage->allocations, percent), reason);
    }
}

static void append_heap(char *text, const sj_zombie_coverage *coverage)
{
    char percent[16];
    append(text, "watched %s of %s%s",
           percent_text(coverage->guarded, coverage->allocations, percent),
           coverage->not_sampled != 0 ? "about " : "",
           SJ_COUNTED(coverage->allocations, "allocation"));
    append_reason(text, coverage, coverage->not_sampled, "left out by sampling (lower \"one_in\")");
    append_reason(text, coverage, coverage->no_block, "found no free block (raise \"blocks\")");
    append_reason(text, coverage, coverage->over_memory,
                  "would have exceeded the memory (raise \"memory\")");
    append_reason(text, coverage, coverage->bad_size,
                  "were empty, larger than 1 MiB or resized in small steps");
    append_reason(text, coverage, coverage->refused, "were refused by the kernel");
    if (coverage->recycled != 0) {
        append(text, "; %s reused after the free", SJ_COUNTED(coverage->recycled, "block"));
    }
}

const char *sj_zombie_coverage_text(const sj_zombie_coverage *coverage,
                                    char text[SJ_ZOMBIE_COVERAGE_BYTES])
{
    text[0] = '\0';
    if (coverage->allocations != 0) {
        append_heap(text, coverage);
    }
    if (coverage->delayed != 0) {
        append(text, "%sdelayed %s", text[0] != '\0' ? "; " : "",
               SJ_COUNTED(coverage->delayed, "free"));
    }
    if (coverage->kept + coverage->not_kept != 0) {
        append(text, "%skept %lld of %s", text[0] != '\0' ? "; " : "", (long long)coverage->kept,
               SJ_COUNTED(coverage->kept + coverage->not_kept, "freed object"));
    }
    return text;
}
