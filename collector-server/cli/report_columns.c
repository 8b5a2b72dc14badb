#include "collector-server/cli/report_columns.h"

#include "schema/queries/cli/report.h"

#include <limits.h>
#include <string.h>

enum { NAME_WIDTH = 30, SOURCE_RANK = 5, NEVER = INT_MAX }; /* NEVER: a rank */

#define QUANTILE(q) "histogram_quantile(s.histogram, " q ", s.session_id, s.min_ns, s.max_ns)"

/* In the order in which tables show them: name, expression, kind, width, rank, is_data. */
static const sj_report_column all_columns[] = {
    {"share", NULL, SJ_REPORT_SHARE, 7, 0, false},
    {"bar", NULL, SJ_REPORT_BAR, 10, 4, false},
    {"calls", "s.calls", SJ_REPORT_COUNT, 10, 2, true},
    {SJ_REPORT_OPEN, "coalesce(o.open_calls, 0)", SJ_REPORT_COUNT, 6, 2, true},
    {"total", "s.total_ns", SJ_REPORT_DURATION, 9, 1, true},
    {"self", "s.self_ns", SJ_REPORT_DURATION, 9, 3, true},
    {"min", "s.min_ns", SJ_REPORT_DURATION, 9, 9, true},
    {"max", "s.max_ns", SJ_REPORT_DURATION, 9, 8, true},
    {"mean", "s.mean_ns", SJ_REPORT_DURATION, 9, 6, true},
    {"p50", QUANTILE("0.5"), SJ_REPORT_DURATION, 9, 10, true},
    {"p95", QUANTILE("0.95"), SJ_REPORT_DURATION, 9, 7, true},
    {"p99", QUANTILE("0.99"), SJ_REPORT_DURATION, 9, 11, true},
    {"untrusted", "s.untrusted", SJ_REPORT_COUNT, 9, NEVER, true},
    {"untimed", "s.untimed_calls", SJ_REPORT_COUNT, 10, NEVER, true},
    {"error", "s.error_ns", SJ_REPORT_DURATION, 9, NEVER, true},
    {"is_self_estimate", sj_report_is_self_estimate_sql, SJ_REPORT_COUNT, 16, NEVER, true},
    {SJ_REPORT_WORKING, "working_ns(s.function_id)", SJ_REPORT_DURATION, 9, NEVER, false},
    {SJ_REPORT_WAITING, "waiting_ns(s.function_id)", SJ_REPORT_DURATION, 9, NEVER, false},
    {"cpu", "s.cpu_ns", SJ_REPORT_DURATION, 9, NEVER, false},
    {"cpu_self", "s.cpu_self_ns", SJ_REPORT_DURATION, 9, NEVER, false},
    {"allocations", "s.allocations", SJ_REPORT_COUNT, 11, NEVER, false},
    {"allocated", "s.allocated_bytes", SJ_REPORT_BYTES, 10, NEVER, false},
    {"allocated_self", "s.allocated_self_bytes", SJ_REPORT_BYTES, 14, NEVER, false},
    {"frees", "s.frees", SJ_REPORT_COUNT, 10, NEVER, false},
    {"freed", "s.freed_bytes", SJ_REPORT_BYTES, 10, NEVER, false},
    {"net", "s.allocated_bytes - s.freed_bytes", SJ_REPORT_BYTES, 11, NEVER, false},
    {"module", "m.path", SJ_REPORT_FILE, 20, 12, true},
    {"source", "source_line(s.function_id)", SJ_REPORT_FILE, 20, SOURCE_RANK, false},
    {"function", "coalesce(f.name, '(function ' || s.function_id || ')')", SJ_REPORT_FUNCTION,
     NAME_WIDTH, 0, true},
};

enum { COLUMN_COUNT = sizeof(all_columns) / sizeof(all_columns[0]) };
_Static_assert(sizeof(all_columns) / sizeof(all_columns[0]) <= (size_t)SJ_REPORT_COLUMNS_MAX,
               "all columns can be selected");

const sj_report_column *sj_report_column_find(const char *name, size_t length)
{
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        if (strlen(all_columns[i].name) == length &&
            strncmp(all_columns[i].name, name, length) == 0) {
            return &all_columns[i];
        }
    }
    return NULL;
}

sj_status sj_report_columns_parse(const char *list, sj_report_selection *selection, sj_error *error)
{
    selection->count = 0;
    for (const char *name = list;; name++) {
        const size_t length = strcspn(name, ",");
        const sj_report_column *column = sj_report_column_find(name, length);
        if (column == NULL) {
            return sj_fail(
                error, SJ_EINVAL,
                "--columns takes share, bar, calls, open, total, self, min, max, mean, p50, "
                "p95, p99, untrusted, untimed, error, is_self_estimate, working, "
                "waiting, cpu, cpu_self, allocations, allocated, allocated_self, frees, "
                "freed, net, module, source and function, not '%.*s'",
                (int)length, name);
        }
        if (selection->count == SJ_REPORT_COLUMNS_MAX) {
            return sj_fail(error, SJ_EINVAL, "--columns takes each column once");
        }
        selection->columns[selection->count++] = column;
        name += length;
        if (*name == '\0') {
            return SJ_OK;
        }
    }
}

bool sj_report_asks_for(const sj_report_selection *selection, const char *sort, const char *name)
{
    bool found = strcmp(sort, name) == 0;
    for (size_t i = 0; i < selection->count; i++) {
        found = found || strcmp(selection->columns[i]->name, name) == 0;
    }
    return found;
}

/* Selects the columns whose rank is at most `rank`. */
static void select_up_to(int rank, bool sources, bool opens, sj_report_selection *selection)
{
    selection->count = 0;
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        const sj_report_column *column = &all_columns[i];
        if (column->rank <= rank && (sources || column->rank != SOURCE_RANK) &&
            (opens || strcmp(column->name, SJ_REPORT_OPEN) != 0)) {
            selection->columns[selection->count++] = column;
        }
    }
}

void sj_report_columns_fit(int width, bool sources, bool opens, sj_report_selection *selection)
{
    int best = 1;
    for (int rank = 1; rank < (int)COLUMN_COUNT; rank++) {
        int used = 0;
        select_up_to(rank, sources, opens, selection);
        for (size_t i = 0; i < selection->count; i++) {
            used += selection->columns[i]->width + 1;
        }
        best = width == 0 || used <= width ? rank : best;
    }
    select_up_to(best, sources, opens, selection);
}

void sj_report_columns_data(sj_report_selection *selection)
{
    selection->count = 0;
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        if (all_columns[i].is_data) {
            selection->columns[selection->count++] = &all_columns[i];
        }
    }
}
