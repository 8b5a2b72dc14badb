/* Measures the time that SQLite itself needs for each row of a virtual table. The table's cursor
 * only counts, and its rows are in the order of the query, so no real table can be faster. Prints
 * ns of CPU a row, the best of all rounds.
 *
 *   sqlite_floor [ROWS [ROUNDS]] */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { GROUPS = 400, DEFAULT_ROWS = 10000000 };

typedef struct counter {
    sqlite3_vtab_cursor base;
    long long row;
} counter;

static long long row_count = DEFAULT_ROWS;

static int connect_table(sqlite3 *database, void *held, int argc, const char *const *argv,
                         sqlite3_vtab **table, char **error)
{
    (void)held, (void)argc, (void)argv, (void)error;
    *table = calloc(1, sizeof(**table));
    return *table == NULL ? SQLITE_NOMEM
                          : sqlite3_declare_vtab(database, "CREATE TABLE t(key INTEGER, value "
                                                           "INTEGER)");
}

static int disconnect_table(sqlite3_vtab *table)
{
    free(table);
    return SQLITE_OK;
}

static int best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table;
    info->orderByConsumed = 1;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **cursor)
{
    (void)table;
    counter *made = calloc(1, sizeof(*made));
    *cursor = &made->base;
    return made != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
    free(cursor);
    return SQLITE_OK;
}

static int filter_rows(sqlite3_vtab_cursor *cursor, int number, const char *plan, int argc,
                       sqlite3_value **argv)
{
    (void)number, (void)plan, (void)argc, (void)argv;
    ((counter *)cursor)->row = 0;
    return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *cursor)
{
    ++((counter *)cursor)->row;
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *cursor)
{
    return ((counter *)cursor)->row >= row_count;
}

static int give_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int column)
{
    const long long row = ((counter *)cursor)->row;
    sqlite3_result_int64(context, column == 0 ? row / (row_count / GROUPS + 1) : row);
    return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *rowid)
{
    *rowid = ((counter *)cursor)->row;
    return SQLITE_OK;
}

static double cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    static const sqlite3_module module = {.xConnect = connect_table,
                                          .xBestIndex = best_index,
                                          .xDisconnect = disconnect_table,
                                          .xOpen = open_cursor,
                                          .xClose = close_cursor,
                                          .xFilter = filter_rows,
                                          .xNext = next_row,
                                          .xEof = at_end,
                                          .xColumn = give_column,
                                          .xRowid = give_rowid};
    static const char *const questions[] = {
        "SELECT count(*) FROM t",
        "SELECT key, count(*), sum(value) FROM t GROUP BY key",
        "SELECT key, count(*), sum(value), min(value), max(value) FROM t GROUP BY key",
    };
    row_count = argc > 1 ? atoll(argv[1]) : row_count;
    const int rounds = argc > 2 ? atoi(argv[2]) : 3;
    sqlite3 *database;
    if (row_count < 1 || sqlite3_open(":memory:", &database) != SQLITE_OK ||
        sqlite3_create_module(database, "t", &module, NULL) != SQLITE_OK) {
        fprintf(stderr, "sqlite_floor: cannot make the table\n");
        return 1;
    }
    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); ++i) {
        double best = 1e18;
        for (int round = 0; round < rounds; ++round) {
            const double begin = cpu_ns();
            if (sqlite3_exec(database, questions[i], NULL, NULL, NULL) != SQLITE_OK) {
                fprintf(stderr, "sqlite_floor: %s\n", sqlite3_errmsg(database));
                return 1;
            }
            const double spent = cpu_ns() - begin;
            best = spent < best ? spent : best;
        }
        printf("%6.1f ns a row  %s\n", best / (double)row_count, questions[i]);
    }
    sqlite3_close(database);
    return 0;
}
