/* Design notes
 *
 * A scan in key order ends with an error at a damaged page. Then the rows after it are read
 * backwards from the end. The range of keys between the two positions is halved again and again.
 * Each half is read from the middle towards its outer end. This finds rows between damaged
 * pages. Ranges are halved in the order in which they were found, so the widest come first.
 * After MOST_FAILURES failed reads, the rest counts as lost.
 *
 * If the first or the last page is damaged, an index of the table gives the least and the greatest
 * key. Without an index, keys are assumed to begin at 1 and to end GUESSED_KEYS after the last
 * known key. In a column that is not the last one, which holds an owner's id, they end
 * GUESSED_OWNERS after it.
 *
 * Keys are the rowid, or the primary key of a table without rowids. A range is halved in the
 * first column in which its ends differ, if both are integers there. If they differ by one and
 * one of them has no further column, the range is cut at a guess in the next column. */
#include "collector-server/maintenance/salvage_rows.h"

#include "collector-server/maintenance/value_order.h"
#include "collector-server/store/database.h"
#include "collector-server/store/sql.h"
#include "proto/base/array.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_KEYS = 6, MOST_FAILURES = 20000, GUESSED_KEYS = 1 << 20, GUESSED_OWNERS = 64 };

/* The first `count` columns of a key. As a limit, 0 means no limit. */
typedef struct row_key {
    int count;
    sqlite3_value *values[MOST_KEYS];
} row_key;

/* Keys above `low` and below `high`, both exclusive. A limit with fewer columns than the key
 * excludes all keys that begin with it. */
typedef struct key_range {
    row_key low, high;
    bool is_far; /* lies beyond a guessed cut, so it is not cut at a guess again */
} key_range;

/* The position where a range is cut: after the keys that begin with the first `column` values of
 * `of`, followed by `value`. */
typedef struct range_cut {
    const row_key *of;
    int column;
    int64_t value;
    bool is_guess;
} range_cut;

typedef struct table_reader {
    sqlite3 *source, *target;
    const char *condition;
    sj_salvaged_table *rows;
    sj_error *error;
    int key_count, column_count;
    char *keys[MOST_KEYS]; /* quoted names */
    char *columns;         /* quoted names, separated by commas */
    bool has_rowid;
    sqlite3_stmt *scans[MOST_KEYS + 1][MOST_KEYS + 1][2];
    sqlite3_stmt *insert;
    key_range *ranges; /* ranges to read; `first` is the index of the next one */
    size_t first, count, capacity;
    int64_t there;       /* number of rows according to an index; -1: no index can be read */
    int64_t least, most; /* values of the first key column, according to that index */
    int failures;
    int64_t refused, lost_ranges;
    bool has_wrong_order; /* a scan went backwards, so the damaged tree may hide rows */
} table_reader;

static bool is_damage(int result)
{
    switch (result & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_IOERR:
    case SQLITE_TOOBIG:
        return true;
    default:
        return false;
    }
}

static sj_status fail_sql(const table_reader *reader, sqlite3 *database)
{
    const sj_status status = sj_database_status(sqlite3_errcode(database));
    return sj_fail(reader->error, status != SJ_OK ? status : SJ_EIO, "cannot salvage %s: %s",
                   reader->rows->name, sqlite3_errmsg(database));
}

static void free_key(row_key *key)
{
    for (int i = 0; i < key->count; ++i) {
        sqlite3_value_free(key->values[i]);
    }
    *key = (row_key){0};
}

static void free_range(key_range *range)
{
    free_key(&range->low);
    free_key(&range->high);
}

/* Copies the first columns of a key. Returns false if out of memory; `*to` is then empty. */
static bool copy_key(const row_key *from, int count, row_key *to)
{
    *to = (row_key){0};
    for (int i = 0; i < count; ++i) {
        to->values[i] = sqlite3_value_dup(from->values[i]);
        to->count += to->values[i] != NULL;
    }
    if (to->count != count) {
        free_key(to);
    }
    return to->count == count;
}

static bool is_integer(sqlite3_value *value)
{
    return sqlite3_value_type(value) == SQLITE_INTEGER;
}

static char *list_keys(const table_reader *reader, int count, const char *end)
{
    sqlite3_str *list = sqlite3_str_new(NULL);
    for (int i = 0; i < count; ++i) {
        sqlite3_str_appendf(list, "%s%s%s", i == 0 ? "" : ", ", reader->keys[i], end);
    }
    return sqlite3_str_finish(list);
}

static void append_limit(const table_reader *reader, sqlite3_str *sql, int count, char sign)
{
    if (count == 0) {
        return;
    }
    char *names = list_keys(reader, count, "");
    sqlite3_str_appendf(sql, " AND (%s) %c (?", names != NULL ? names : "", sign);
    for (int i = 1; i < count; ++i) {
        sqlite3_str_appendall(sql, ", ?");
    }
    sqlite3_str_appendall(sql, ")");
    sqlite3_free(names);
}

/* Returns a statement for limits of this many columns, or NULL on failure. */
static sqlite3_stmt *find_scan(table_reader *reader, const key_range *range, bool backwards)
{
    sqlite3_stmt **scan = &reader->scans[range->low.count][range->high.count][backwards];
    if (*scan != NULL) {
        return *scan;
    }
    char *names = list_keys(reader, reader->key_count, "");
    char *order = list_keys(reader, reader->key_count, backwards ? " DESC" : "");
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendf(sql, "SELECT %s, %s FROM \"%w\"%s WHERE %s", names, reader->columns,
                        reader->rows->name, reader->has_rowid ? " NOT INDEXED" : "",
                        reader->condition != NULL ? reader->condition : "1");
    append_limit(reader, sql, range->low.count, '>');
    append_limit(reader, sql, range->high.count, '<');
    sqlite3_str_appendf(sql, " ORDER BY %s", order);
    sqlite3_free(names);
    sqlite3_free(order);
    char *text = sqlite3_str_finish(sql);
    if (text != NULL) {
        sqlite3_prepare_v2(reader->source, text, -1, scan, NULL);
    }
    sqlite3_free(text);
    return *scan;
}

static void bind_limits(sqlite3_stmt *scan, const key_range *range)
{
    for (int i = 0; i < range->low.count; ++i) {
        sqlite3_bind_value(scan, i + 1, range->low.values[i]);
    }
    for (int i = 0; i < range->high.count; ++i) {
        sqlite3_bind_value(scan, range->low.count + i + 1, range->high.values[i]);
    }
}

/* Inserts the current row of `scan` into the target. */
static sj_status save_row(table_reader *reader, sqlite3_stmt *scan)
{
    for (int i = 0; i < reader->column_count; ++i) {
        sqlite3_bind_value(reader->insert, i + 1,
                           sqlite3_column_value(scan, reader->key_count + i));
    }
    sqlite3_step(reader->insert);
    const int result = sqlite3_reset(reader->insert) & 0xff;
    if (result == SQLITE_OK) {
        reader->rows->saved++;
        return SJ_OK;
    }
    reader->refused++;
    return result == SQLITE_CONSTRAINT || result == SQLITE_MISMATCH || result == SQLITE_TOOBIG
               ? SJ_OK
               : fail_sql(reader, reader->target);
}

/* True if the row comes after the row of `last`. In a damaged tree, a scan may go backwards, or
 * meet a page twice. */
static bool follows(sqlite3_stmt *scan, const row_key *last, bool backwards)
{
    int order = last->count == 0 ? 1 : 0;
    for (int i = 0; i < last->count && order == 0; ++i) {
        order = sj_value_order(sqlite3_column_value(scan, i), last->values[i]);
        order = backwards ? -order : order;
    }
    return order > 0;
}

static sj_status dup_key(const table_reader *reader, sqlite3_stmt *scan, row_key *last)
{
    free_key(last);
    for (int i = 0; i < reader->key_count; ++i) {
        last->values[i] = sqlite3_value_dup(sqlite3_column_value(scan, i));
        if (last->values[i] == NULL) {
            return sj_fail(reader->error, SJ_ENOMEM, "no memory to salvage rows");
        }
        last->count++;
    }
    return SJ_OK;
}

typedef struct range_scan {
    table_reader *reader;
    row_key last; /* key of the last row that was saved */
    bool backwards;
    sj_status status;
} range_scan;

static int read_row(void *context, sqlite3_stmt *row)
{
    range_scan *scan = context;
    if (!follows(row, &scan->last, scan->backwards)) {
        scan->reader->has_wrong_order = true;
        return SQLITE_CORRUPT;
    }
    scan->status = save_row(scan->reader, row);
    if (scan->status == SJ_OK) {
        scan->status = dup_key(scan->reader, row, &scan->last);
    }
    return scan->status == SJ_OK ? SQLITE_OK : SQLITE_ABORT;
}

/* Saves the rows of a range until one cannot be read. Sets `*is_read` to true if all were read.
 * Otherwise, the range becomes the part that was not read. */
static sj_status read_range(table_reader *reader, key_range *range, bool backwards, bool *is_read)
{
    range_scan scan = {.reader = reader, .backwards = backwards};
    sqlite3_stmt *statement = find_scan(reader, range, backwards);
    *is_read = false;
    if (statement == NULL) {
        reader->failures++;
        return is_damage(sqlite3_errcode(reader->source)) ? SJ_OK
                                                          : fail_sql(reader, reader->source);
    }
    bind_limits(statement, range);
    const int result = sj_sql_scan(statement, read_row, &scan);
    if (scan.status == SJ_OK && result != SQLITE_OK && !is_damage(result)) {
        scan.status = fail_sql(reader, reader->source);
    }
    sqlite3_clear_bindings(statement);
    *is_read = result == SQLITE_OK;
    reader->failures += *is_read ? 0 : 1;
    row_key *limit = backwards ? &range->high : &range->low;
    if (scan.last.count != 0) {
        free_key(limit);
        *limit = scan.last;
    }
    return scan.status;
}

/* Appends a range to the queue, which owns it then. */
static sj_status add_range(table_reader *reader, key_range *range)
{
    const sj_status status = sj_array_reserve(&reader->ranges, &reader->capacity, reader->count, 1,
                                              sizeof(*reader->ranges));
    if (status != SJ_OK) {
        free_range(range);
        return sj_fail(reader->error, status, "no memory to salvage rows");
    }
    reader->ranges[reader->count++] = *range;
    return SJ_OK;
}

/* Cuts a range whose ends differ by one in `column`, at a guess in the next column. */
static bool guess_cut(const table_reader *reader, const key_range *range, int column,
                      range_cut *cut)
{
    const bool ends_below = range->high.count == column + 1; /* all keys of the range begin like
                                                              * `low` */
    const row_key *known = ends_below ? &range->low : &range->high;
    const row_key *other = ends_below ? &range->high : &range->low;
    if (range->is_far || other->count != column + 1 || known->count <= column + 1 ||
        !is_integer(known->values[column + 1])) {
        return false;
    }
    const int64_t value = sqlite3_value_int64(known->values[column + 1]);
    if (value <= 0 || value > INT64_MAX / 2) {
        return false;
    }
    const int64_t guess = column + 2 < reader->key_count ? GUESSED_OWNERS : GUESSED_KEYS;
    *cut = (range_cut){.of = known,
                       .column = column + 1,
                       .value = ends_below ? value + guess : 0,
                       .is_guess = true};
    return true;
}

/* Finds the position where a range is cut. Returns false if it cannot be cut. */
static bool find_cut(const table_reader *reader, const key_range *range, range_cut *cut)
{
    const row_key *low = &range->low;
    const row_key *high = &range->high;
    int i = 0;
    while (i < low->count && i < high->count &&
           sj_value_order(low->values[i], high->values[i]) == 0) {
        i++;
    }
    if (i >= low->count || i >= high->count || !is_integer(low->values[i]) ||
        !is_integer(high->values[i])) {
        return false;
    }
    const int64_t from = sqlite3_value_int64(low->values[i]);
    const uint64_t width = (uint64_t)sqlite3_value_int64(high->values[i]) - (uint64_t)from;
    if (sqlite3_value_int64(high->values[i]) <= from) {
        return false;
    }
    if (width == 1) {
        return guess_cut(reader, range, i, cut);
    }
    *cut = (range_cut){.of = low, .column = i, .value = (int64_t)((uint64_t)from + width / 2)};
    /* otherwise the lower half would be the whole range */
    if (width == 2 && high->count == i + 1) {
        cut->value = from;
        return low->count > i + 1;
    }
    return true;
}

static sqlite3_value *make_integer(const table_reader *reader, int64_t number)
{
    sqlite3_stmt *row = NULL;
    sqlite3_value *made = NULL;
    if (sqlite3_prepare_v2(reader->target, "SELECT ?1", -1, &row, NULL) == SQLITE_OK &&
        sqlite3_bind_int64(row, 1, number) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW) {
        made = sqlite3_value_dup(sqlite3_column_value(row, 0));
    }
    sqlite3_finalize(row);
    return made;
}

/* Makes a limit of the first `column` values of `from`, followed by `number`. */
static bool make_limit(const table_reader *reader, const row_key *from, int column, int64_t number,
                       row_key *limit)
{
    if (!copy_key(from, column, limit)) {
        return false;
    }
    limit->values[column] = make_integer(reader, number);
    limit->count += limit->values[column] != NULL;
    if (limit->count != column + 1) {
        free_key(limit);
        return false;
    }
    return true;
}

/* Reads the two halves of a range from the middle outwards. Queues the unread part of each half. */
static sj_status halve(table_reader *reader, const key_range *range, const range_cut *cut)
{
    key_range lower = {.is_far = range->is_far || (cut->is_guess && cut->of == &range->high)};
    key_range upper = {.is_far = range->is_far || (cut->is_guess && cut->of == &range->low)};
    bool is_lower_read = false;
    bool is_upper_read = false;
    if (!copy_key(&range->low, range->low.count, &lower.low) ||
        !make_limit(reader, cut->of, cut->column, cut->value + 1, &lower.high) ||
        !make_limit(reader, cut->of, cut->column, cut->value, &upper.low) ||
        !copy_key(&range->high, range->high.count, &upper.high)) {
        free_range(&lower);
        free_range(&upper);
        return sj_fail(reader->error, SJ_ENOMEM, "no memory to salvage rows");
    }
    sj_status status = read_range(reader, &lower, true, &is_lower_read);
    if (status == SJ_OK) {
        status = read_range(reader, &upper, false, &is_upper_read);
    }
    if (status == SJ_OK && !is_lower_read) {
        status = add_range(reader, &lower);
        lower = (key_range){0};
    }
    if (status == SJ_OK && !is_upper_read) {
        status = add_range(reader, &upper);
        upper = (key_range){0};
    }
    free_range(&lower);
    free_range(&upper);
    return status;
}

/* Reads the number of rows, and the least and greatest first key, from an index of the table. */
typedef struct index_binds {
    const char *table;
    int64_t has_rowid;
} index_binds;

static sj_status try_index(void *context, sqlite3_stmt *index)
{
    table_reader *reader = context;
    sqlite3_stmt *row = NULL;
    char *sql = sqlite3_mprintf("SELECT count(*), min(%s), max(%s) FROM \"%w\" INDEXED BY"
                                " \"%w\"",
                                reader->keys[0], reader->keys[0], reader->rows->name,
                                sqlite3_column_text(index, 0));
    if (sql != NULL && sqlite3_prepare_v2(reader->source, sql, -1, &row, NULL) == SQLITE_OK &&
        sqlite3_step(row) == SQLITE_ROW) {
        reader->there = sqlite3_column_int64(row, 0);
        reader->least = sqlite3_column_int64(row, 1);
        reader->most = sqlite3_column_int64(row, 2);
    }
    sqlite3_finalize(row);
    sqlite3_free(sql);
    return reader->there < 0 ? SJ_OK : SJ_EEXIST;
}

static sj_status count_by_index(table_reader *reader)
{
    static const sj_sql_field fields[] = {{SJ_BIND_TEXT, offsetof(index_binds, table)},
                                          {SJ_BIND_INT, offsetof(index_binds, has_rowid)}};
    const index_binds values = {.table = reader->rows->name, .has_rowid = reader->has_rowid};
    reader->there = -1;
    const sj_status status = sj_sql_each(
        reader->target,
        "SELECT name FROM pragma_index_list(?1) WHERE partial = 0 AND (?2 OR origin <> 'pk')",
        (sj_sql_binds){fields, 2, &values}, try_index, reader, reader->error);
    return status == SJ_EEXIST ? SJ_OK : status;
}

/* Gives a range the limits that it lacks, so that it can be halved. */
static sj_status limit_range(const table_reader *reader, key_range *range)
{
    const row_key *low = &range->low;
    const bool is_known = reader->there > 0;
    const int64_t before = is_known && reader->least > INT64_MIN ? reader->least - 1 : 0;
    if (range->low.count == 0 && !make_limit(reader, &range->low, 0, before, &range->low)) {
        return sj_fail(reader->error, SJ_ENOMEM, "no memory to salvage rows");
    }
    if (range->high.count != 0 || !is_integer(low->values[0])) {
        return SJ_OK;
    }
    const int64_t from = sqlite3_value_int64(low->values[0]);
    const int64_t guess = reader->key_count > 1 ? GUESSED_OWNERS : GUESSED_KEYS;
    int64_t behind = from < INT64_MAX - guess ? from + guess : INT64_MAX;
    if (is_known && reader->most < INT64_MAX) {
        behind = reader->most + 1;
    }
    return make_limit(reader, &range->high, 0, behind, &range->high)
               ? SJ_OK
               : sj_fail(reader->error, SJ_ENOMEM, "no memory to salvage rows");
}

static sj_status read_table(table_reader *reader)
{
    key_range range = {0};
    bool is_read = false;
    sj_status status = read_range(reader, &range, false, &is_read);
    if (status == SJ_OK && !is_read) {
        status = read_range(reader, &range, true, &is_read);
    }
    if (status == SJ_OK && !is_read) {
        status = limit_range(reader, &range);
    }
    if (status != SJ_OK || is_read) {
        free_range(&range);
        return status;
    }
    status = add_range(reader, &range);
    while (status == SJ_OK && reader->first < reader->count) {
        key_range next = reader->ranges[reader->first++];
        range_cut cut;
        if (reader->failures < MOST_FAILURES && find_cut(reader, &next, &cut)) {
            status = halve(reader, &next, &cut);
        } else {
            reader->lost_ranges++;
        }
        free_range(&next);
    }
    return status;
}

static void count_missing(const table_reader *reader)
{
    sj_salvaged_table *rows = reader->rows;
    const int64_t there = reader->condition == NULL ? reader->there : -1;
    rows->missing = there > rows->saved ? there - rows->saved : 0;
    if (there < 0) {
        rows->missing = reader->refused;
        rows->is_unknown = reader->lost_ranges != 0 || reader->has_wrong_order;
    }
}

static char *text_of(sqlite3 *database, const char *sql, const char *table)
{
    sqlite3_stmt *row = NULL;
    char *text = NULL;
    if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) == SQLITE_OK) {
        sqlite3_bind_text(row, 1, table, -1, SQLITE_STATIC);
        if (sqlite3_step(row) == SQLITE_ROW) {
            text = sqlite3_mprintf("%s", sqlite3_column_text(row, 0));
        }
    }
    sqlite3_finalize(row);
    return text;
}

static sj_status add_key(void *context, sqlite3_stmt *row)
{
    table_reader *reader = context;
    if (reader->key_count == MOST_KEYS || reader->has_rowid) {
        return SJ_EEXIST;
    }
    reader->has_rowid = sqlite3_column_int(row, 0) == 0;
    reader->keys[reader->key_count++] =
        reader->has_rowid ? sqlite3_mprintf("rowid")
                          : sqlite3_mprintf("\"%w\"", sqlite3_column_text(row, 1));
    return SJ_OK;
}

static sj_status describe_keys(table_reader *reader)
{
    const sj_status status =
        sj_sql_each(reader->target,
                    "SELECT t.wr, c.name FROM pragma_table_list(?1) AS t JOIN"
                    " pragma_table_info(?1) AS c ON c.pk > 0 OR NOT t.wr"
                    " WHERE t.schema = 'main' ORDER BY c.pk",
                    SJ_SQL_TEXT(reader->rows->name), add_key, reader, reader->error);
    if (status != SJ_OK && status != SJ_EEXIST) {
        return status;
    }
    return reader->key_count != 0 && reader->keys[reader->key_count - 1] != NULL
               ? SJ_OK
               : sj_fail(reader->error, SJ_ENOMEM, "no memory to salvage rows");
}

static sj_status describe_columns(table_reader *reader)
{
    char *places = text_of(reader->target, "SELECT group_concat('?') FROM pragma_table_info(?1)",
                           reader->rows->name);
    reader->columns =
        text_of(reader->target,
                "SELECT group_concat('\"' || name || '\"', ', ') FROM pragma_table_info(?1)",
                reader->rows->name);
    char *sql = places == NULL || reader->columns == NULL
                    ? NULL
                    : sqlite3_mprintf("INSERT INTO \"%w\" (%s) VALUES (%s)", reader->rows->name,
                                      reader->columns, places);
    sqlite3_free(places);
    if (sql == NULL) {
        return sj_fail(reader->error, SJ_ENOMEM, "no memory to salvage rows");
    }
    const int result = sqlite3_prepare_v2(reader->target, sql, -1, &reader->insert, NULL);
    sqlite3_free(sql);
    reader->column_count = sqlite3_bind_parameter_count(reader->insert);
    return result == SQLITE_OK ? SJ_OK : fail_sql(reader, reader->target);
}

static void free_reader(table_reader *reader)
{
    for (int i = 0; i <= MOST_KEYS; ++i) {
        for (int j = 0; j <= MOST_KEYS; ++j) {
            sqlite3_finalize(reader->scans[i][j][0]);
            sqlite3_finalize(reader->scans[i][j][1]);
        }
    }
    while (reader->first < reader->count) {
        free_range(&reader->ranges[reader->first++]);
    }
    free(reader->ranges);
    for (int i = 0; i < reader->key_count; ++i) {
        sqlite3_free(reader->keys[i]);
    }
    sqlite3_free(reader->columns);
    sqlite3_finalize(reader->insert);
}

sj_status sj_salvage_rows(sqlite3 *source, sqlite3 *target, const char *condition,
                          sj_salvaged_table *rows, sj_error *error)
{
    table_reader reader = {
        .source = source, .target = target, .condition = condition, .rows = rows, .error = error};
    sj_status status = describe_keys(&reader);
    if (status == SJ_OK) {
        status = describe_columns(&reader);
    }
    if (status == SJ_OK) {
        status = count_by_index(&reader);
    }
    if (status == SJ_OK) {
        status = read_table(&reader);
    }
    if (status == SJ_OK) {
        count_missing(&reader);
    }
    free_reader(&reader);
    return status;
}
