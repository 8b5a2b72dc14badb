#include "collector-server/cli/clock_mix.h"
#include "schema/queries/cli/clock_mix.h"

#include <stdint.h>
#include <stdio.h>

typedef struct clock_counts {
    int64_t sessions;
    int64_t estimated; /* sessions with calls that were counted without a clock */
    int64_t adaptive;  /* sessions recorded with --clock adaptive, with or without such calls */
} clock_counts;

static clock_counts count_sessions(const sj_compare_side *side)
{
    clock_counts counts = {0};
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(side->database, sj_clock_mix_sql, -1, &row, NULL) == SQLITE_OK) {
        sqlite3_bind_text(row, 1, side->set, -1, SQLITE_STATIC);
        if (sqlite3_step(row) == SQLITE_ROW) {
            counts.sessions = sqlite3_column_int64(row, 0);
            counts.estimated = sqlite3_column_int64(row, 1);
            counts.adaptive = sqlite3_column_int64(row, 2);
        }
    }
    sqlite3_finalize(row);
    return counts;
}

void sj_clock_mix_warn(const sj_command *command, const sj_compare_side sides[2])
{
    const clock_counts a = count_sessions(&sides[0]);
    const clock_counts b = count_sessions(&sides[1]);
    const int64_t estimated = a.estimated + b.estimated;
    const int64_t sessions = a.sessions + b.sessions;
    if (estimated != 0 && estimated != sessions) {
        fprintf(stderr,
                "sojourn %s: warning: calls were counted without a clock (--clock adaptive) in "
                "%lld of %lld sessions of %s and %lld of %lld of %s; they do not contain what "
                "reading a clock costs, and seem shorter than those of the other sessions%s\n",
                command->name, (long long)a.estimated, (long long)a.sessions, sides[0].set,
                (long long)b.estimated, (long long)b.sessions, sides[1].set,
                a.adaptive + b.adaptive == sessions
                    ? ", which had none to count: compare longer runs"
                    : ": compare sessions that were recorded alike");
    }
}
