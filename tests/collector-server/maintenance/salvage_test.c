/* Salvage reads the readable rows of a damaged database, and they equal what was stored. Missing
 * rows are counted. SJ_LONG=1: five hundred damaged files instead of a few. */
#include "collector-server/maintenance/salvage.h"

#include "collector-server/maintenance/database_copy.h"
#include "collector-server/store/database.h"
#include "tests/collector-server/store/lab_file.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    EVENTS = 200,
    BLOCKS = 20,
    FUNCTIONS = 900,
    PAGE_BYTES = SJ_DATABASE_PAGE_BYTES,
    DAMAGES = 8,
    LONG_DAMAGES = 500
};

/* Adds 3000 rows by rowid with an index, and 3000 rows without either. */
static const char more_rows_sql[] =
    "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO"
    " marks (session_id, number, name, is_end, at_ns) SELECT 1, i, 'mark number ' || i, 0, i FROM"
    " n;"
    "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO"
    " refused_functions SELECT 1, 1, i, 'because of reason number ' || i FROM n";

/* Counts rows of `main` that are not in `was`, the database before the damage. */
static const char wrong_rows_sql[] =
    "SELECT (SELECT count(*) FROM (SELECT * FROM marks EXCEPT SELECT * FROM was.marks)) +"
    " (SELECT count(*) FROM (SELECT * FROM refused_functions EXCEPT SELECT * FROM"
    "  was.refused_functions)) +"
    " (SELECT count(*) FROM (SELECT * FROM functions WHERE name NOT LIKE '(lost%' EXCEPT SELECT *"
    "  FROM was.functions)) +"
    " (SELECT count(*) FROM (SELECT * FROM threads EXCEPT SELECT * FROM was.threads)) +"
    " (SELECT count(*) FROM (SELECT block_id, stream_id, first_event, event_count, data FROM blocks"
    "  WHERE quarantined IS NULL EXCEPT SELECT block_id, stream_id, first_event, event_count, data"
    "  FROM was.blocks)) +"
    " (SELECT count(*) FROM (SELECT session_id, uuid, name, started_ticks, sent_calls FROM sessions"
    "  EXCEPT SELECT session_id, uuid, name, started_ticks, sent_calls FROM was.sessions))";

typedef struct salvage_case {
    lab_file *lab;
    char was[96];     /* the database before the damage, without a log */
    char damaged[96]; /* the damaged database, beside it */
    char made[96];
    sj_salvaged salvaged;
    sj_error error;
    char found[4096];
} salvage_case;

static void begin_case(void **state, salvage_case *of)
{
    *of = (salvage_case){.lab = *state};
    snprintf(of->was, sizeof(of->was), "%s.was", of->lab->path);
    snprintf(of->damaged, sizeof(of->damaged), "%s.damaged", of->lab->path);
    snprintf(of->made, sizeof(of->made), "%s.made", of->lab->path);
    lab_file_remove(of->was);
    lab_file_remove(of->damaged);
    lab_file_remove(of->made);
    sj_copied copied;
    assert_int_equal(sj_database_backup(of->lab->path, of->was, &copied, &of->error), SJ_OK);
}

static void end_case(salvage_case *of)
{
    sj_salvaged_deinit(&of->salvaged);
    lab_file_remove(of->was);
    lab_file_remove(of->damaged);
    lab_file_remove(of->made);
}

static int set_up(void **state)
{
    lab_file_set_up(state);
    lab_file *lab = *state;
    lab->maker.function_count = FUNCTIONS;
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    for (int i = 0; i < BLOCKS; ++i) {
        lab_file_put(lab, frame_maker_block(&lab->maker, EVENTS, 0));
    }
    lab_file_put(lab, frame_maker_end(&lab->maker));
    lab_file_commit(lab);
    lab_file_run(lab, more_rows_sql);
    return 0;
}

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static void write_file(const char *path, const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void expect_same_file(const char *path, const uint8_t *bytes, size_t size)
{
    size_t found_size;
    uint8_t *found = read_file(path, &found_size);
    assert_int_equal(found_size, size);
    assert_memory_equal(found, bytes, size);
    free(found);
}

static void note(void *context, const sj_finding *finding)
{
    salvage_case *of = context;
    const size_t used = strlen(of->found);
    snprintf(of->found + used, sizeof(of->found) - used, "%s\n", finding->what);
}

/* Salvages the damaged file, which does not change. */
static sj_status salvage(salvage_case *of)
{
    size_t size;
    uint8_t *before = read_file(of->damaged, &size);
    sj_salvaged_deinit(&of->salvaged);
    lab_file_remove(of->made);
    of->found[0] = '\0';
    const sj_status status =
        sj_database_salvage(of->damaged, of->made, note, of, &of->salvaged, &of->error);
    expect_same_file(of->damaged, before, size);
    free(before);
    return status;
}

static char *ask(const char *path, const char *sql)
{
    lab_file other = {0};
    assert_true(strlen(path) < sizeof(other.path));
    memcpy(other.path, path, strlen(path));
    return lab_file_ask(&other, sql);
}

static long long ask_number(const char *path, const char *sql)
{
    char *text = ask(path, sql);
    const long long number = strtoll(text, NULL, 10);
    sqlite3_free(text);
    return number;
}

static long long count_wrong_rows(const salvage_case *of)
{
    sqlite3 *database = NULL;
    sqlite3_stmt *row = NULL;
    char *attach = sqlite3_mprintf("ATTACH %Q AS was", of->was);
    assert_int_equal(sqlite3_open(of->made, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, attach, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(database, wrong_rows_sql, -1, &row, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    const long long count = sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    sqlite3_close(database);
    sqlite3_free(attach);
    return count;
}

static const sj_salvaged_table *find_table(const salvage_case *of, const char *name)
{
    for (size_t i = 0; i < of->salvaged.count; ++i) {
        if (strcmp(of->salvaged.tables[i].name, name) == 0) {
            return &of->salvaged.tables[i];
        }
    }
    fail_msg("no table %s", name);
    return NULL;
}

/* Returns the page of a leaf by its number, counted from 0, or from the last one, which is -1. */
static long long find_leaf(const salvage_case *of, const char *table, int number, long long *rows)
{
    char sql[256];
    snprintf(sql, sizeof(sql),
             "SELECT pageno FROM dbstat WHERE name = '%s' AND pagetype = 'leaf' ORDER BY path %s"
             " LIMIT 1 OFFSET %d",
             table, number < 0 ? "DESC" : "", number < 0 ? -1 - number : number);
    const long long page = ask_number(of->was, sql);
    assert_true(page > 1);
    snprintf(sql, sizeof(sql), "SELECT ncell FROM dbstat WHERE pageno = %lld", page);
    *rows += ask_number(of->was, sql);
    return page;
}

static void expect_counts(const salvage_case *of, const char *name, long long rows, long long lost,
                          bool is_known)
{
    const sj_salvaged_table *table = find_table(of, name);
    assert_int_equal(table->saved, rows - lost);
    assert_int_equal(table->missing, is_known ? lost : 0);
    assert_int_equal(table->is_unknown, !is_known);
}

static void a_sound_database_is_saved_whole(void **state)
{
    salvage_case of;
    begin_case(state, &of);
    size_t size;
    uint8_t *bytes = read_file(of.was, &size);
    write_file(of.damaged, bytes, size);
    assert_int_equal(salvage(&of), SJ_OK);
    assert_true(sj_salvaged_is_whole(&of.salvaged));
    assert_int_equal(of.salvaged.sessions, 1);
    assert_int_equal(count_wrong_rows(&of), 0);
    assert_string_equal(of.found, "");
    char *sums = lab_file_ask(of.lab, lab_file_sums_sql);
    char *rebuilt = ask(of.made, lab_file_sums_sql);
    assert_string_equal(rebuilt, sums);
    sqlite3_free(sums);
    sqlite3_free(rebuilt);
    sj_salvaged_deinit(&of.salvaged);
    assert_int_equal(sj_database_salvage(of.damaged, of.made, NULL, NULL, &of.salvaged, &of.error),
                     SJ_EEXIST);
    free(bytes);
    end_case(&of);
}

/* Damages two pages with sound rows between them, and the first and the last page of the table. */
static void rows_around_damaged_pages_are_saved(void **state)
{
    static const int leaves[][2] = {{2, 5}, {0, 3}, {-1, 1}};
    salvage_case of;
    begin_case(state, &of);
    size_t size;
    uint8_t *bytes = read_file(of.was, &size);
    for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); ++i) {
        long long marks = 0;
        long long refused = 0;
        uint8_t *damaged = malloc(size);
        assert_non_null(damaged);
        memcpy(damaged, bytes, size);
        for (int j = 0; j < 2; ++j) {
            memset(damaged + (find_leaf(&of, "marks", leaves[i][j], &marks) - 1) * PAGE_BYTES, 0,
                   PAGE_BYTES);
            memset(damaged + (find_leaf(&of, "refused_functions", leaves[i][j], &refused) - 1) *
                                 PAGE_BYTES,
                   0, PAGE_BYTES);
        }
        write_file(of.damaged, damaged, size);
        free(damaged);
        assert_int_equal(salvage(&of), SJ_OK);
        assert_false(sj_salvaged_is_whole(&of.salvaged));
        expect_counts(&of, "marks", 3000, marks, true);
        expect_counts(&of, "refused_functions", 3000, refused, false);
        assert_int_equal(count_wrong_rows(&of), 0);
        assert_string_equal(of.found, "");
    }
    free(bytes);
    end_case(&of);
}

/* Lets the table's tree lead to the leaf of its cell 3 a second time, instead of the next leaf. */
static long long repeat_leaf(const salvage_case *of, const char *table, uint8_t *bytes)
{
    enum { CELL_POINTERS = 12, CELL = 3, POINTER_BYTES = 4 };
    char sql[256];
    const uint8_t *cells[2];
    snprintf(sql, sizeof(sql), "SELECT rootpage FROM sqlite_schema WHERE name = '%s'", table);
    uint8_t *root = bytes + (ask_number(of->was, sql) - 1) * PAGE_BYTES;
    for (int i = 0; i < 2; ++i) {
        const uint8_t *pointer = root + CELL_POINTERS + (ptrdiff_t)(CELL + i) * 2;
        cells[i] = root + (pointer[0] << 8 | pointer[1]);
    }
    memcpy(root + (cells[1] - root), cells[0], POINTER_BYTES);
    long long rows = 0;
    (void)find_leaf(of, table, CELL + 1, &rows);
    return rows;
}

/* The keys begin with the same columns in all rows, so only the last column shows that the scan
 * meets rows again. */
static void a_leaf_that_is_met_twice_is_noticed(void **state)
{
    salvage_case of;
    begin_case(state, &of);
    size_t size;
    uint8_t *bytes = read_file(of.was, &size);
    const long long lost = repeat_leaf(&of, "refused_functions", bytes);
    write_file(of.damaged, bytes, size);
    assert_int_equal(salvage(&of), SJ_OK);
    expect_counts(&of, "refused_functions", 3000, lost, false);
    assert_int_equal(count_wrong_rows(&of), 0);
    free(bytes);
    end_case(&of);
}

/* The store has its database open, as a running collector has. */
static void a_database_in_use_is_refused(void **state)
{
    salvage_case of;
    begin_case(state, &of);
    assert_int_equal(
        sj_database_salvage(of.lab->path, of.made, NULL, NULL, &of.salvaged, &of.error), SJ_EAGAIN);
    assert_non_null(strstr(of.error.text, "end it first"));
    assert_int_not_equal(access(of.made, F_OK), 0);
    end_case(&of);
}

/* Copies the lab with its log. If `at` is not 0, flips a bit of the log's byte `at`, which counts
 * from the end if negative. */
static void copy_with_log(const salvage_case *of, long at)
{
    char name[112];
    size_t size;
    uint8_t *bytes = read_file(of->lab->path, &size);
    write_file(of->damaged, bytes, size);
    free(bytes);
    snprintf(name, sizeof(name), "%s-wal", of->lab->path);
    bytes = read_file(name, &size);
    if (at != 0) {
        bytes[at < 0 ? (long)size + at : at] ^= 0x10;
    }
    snprintf(name, sizeof(name), "%s-wal", of->damaged);
    write_file(name, bytes, size);
    free(bytes);
}

/* The log of the file that was there before is left out. */
static void a_foreign_log_is_left_out(void **state)
{
    salvage_case of;
    size_t size;
    begin_case(state, &of);
    lab_file_run(of.lab,
                 "PRAGMA wal_checkpoint(TRUNCATE); UPDATE sessions SET name = 'in the log'");
    copy_with_log(&of, 0);
    uint8_t *bytes = read_file(of.was, &size);
    write_file(of.damaged, bytes, size);
    free(bytes);
    assert_int_equal(salvage(&of), SJ_OK);
    assert_true(of.salvaged.log_is_foreign);
    assert_int_equal(
        ask_number(of.made, "SELECT count(*) FROM sessions WHERE name <> 'in the log'"), 1);
    end_case(&of);
}

/* Damages a sound copy by statements that break rules. */
static void damage_by(salvage_case *of, const char *sql)
{
    size_t size;
    uint8_t *bytes = read_file(of->was, &size);
    sqlite3 *database = NULL;
    write_file(of->damaged, bytes, size);
    free(bytes);
    assert_int_equal(sqlite3_open(of->damaged, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}

static void substitutes_keep_calls_readable(void **state)
{
    static const struct {
        const char *sql, *table;
        long long substitutes;
        const char *names; /* returns 1 if the expected rows are substitutes */
    } damages[] = {
        {"DELETE FROM devices", "devices", 1, "SELECT count(*) FROM devices"},
        {"DELETE FROM modules", "modules", 1,
         "SELECT count(*) = 900 FROM functions JOIN modules USING (module_id) WHERE functions.name"
         " NOT LIKE '(lost%'"},
        {"DELETE FROM hook_plans; DELETE FROM functions WHERE function_id % 3 = 0", "functions",
         FUNCTIONS / 3, "SELECT count(*) = 300 FROM functions WHERE name LIKE '(lost function %'"},
        {"DELETE FROM modules; DELETE FROM functions WHERE function_id = 1", "functions", FUNCTIONS,
         "SELECT count(*) = 900 FROM functions WHERE name LIKE '(lost function %'"},
    };
    salvage_case of;
    begin_case(state, &of);
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); ++i) {
        damage_by(&of, damages[i].sql);
        assert_int_equal(salvage(&of), SJ_OK);
        assert_string_equal(of.found, "");
        assert_int_equal(find_table(&of, damages[i].table)->substitutes, damages[i].substitutes);
        assert_int_equal(ask_number(of.made, damages[i].names), 1);
        assert_int_equal(ask_number(of.made, "SELECT stored_calls = sent_calls FROM sessions"), 1);
    }
    end_case(&of);
}

static void lost_blocks_leave_gaps(void **state)
{
    salvage_case of;
    begin_case(state, &of);
    damage_by(&of, "DELETE FROM blocks WHERE block_id IN (3, 4, 9)");
    assert_int_equal(salvage(&of), SJ_OK);
    assert_non_null(strstr(of.found, "were sent and are not stored"));
    assert_int_equal(
        ask_number(of.made, "SELECT sent_calls = stored_calls + lost_calls AND missing_calls > 0"
                            " FROM sessions"),
        1);
    assert_int_equal(
        ask_number(of.made, "SELECT count(*) FROM gaps WHERE reason = 'not_stored' AND calls > 0"),
        2);
    /* Without its stream no block can be read, and without its session nothing can. */
    damage_by(&of, "DELETE FROM streams");
    assert_int_equal(salvage(&of), SJ_OK);
    assert_int_equal(find_table(&of, "blocks")->dropped, find_table(&of, "blocks")->saved);
    damage_by(&of, "DELETE FROM sessions");
    assert_int_equal(salvage(&of), SJ_OK);
    assert_int_equal(find_table(&of, "marks")->dropped, 3000);
    assert_string_equal(of.found, "");
    end_case(&of);
}

static void an_unreadable_database_is_refused(void **state)
{
    salvage_case of;
    begin_case(state, &of);
    size_t size;
    uint8_t *bytes = read_file(of.was, &size);
    memset(bytes, 0, PAGE_BYTES);
    write_file(of.damaged, bytes, size);
    assert_int_equal(salvage(&of), SJ_ECORRUPT);
    assert_non_null(strstr(of.error.text, "sojourn restore"));
    assert_int_not_equal(access(of.made, F_OK), 0);
    write_file(of.damaged, bytes, 0);
    assert_int_equal(salvage(&of), SJ_ECORRUPT);
    damage_by(&of, "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE ('"
                   " WHERE name = 'gaps'");
    assert_int_equal(salvage(&of), SJ_OK); /* the other tables are read */
    assert_true(find_table(&of, "gaps")->is_unknown);
    assert_int_equal(find_table(&of, "marks")->saved, 3000);
    damage_by(&of, "PRAGMA user_version = 999");
    assert_int_equal(salvage(&of), SJ_EVERSION);
    damage_by(&of, "PRAGMA application_id = 0x534a4442");
    assert_int_equal(salvage(&of), SJ_EUNSUPPORTED);
    assert_non_null(strstr(of.error.text, "written by a development version of Sojourn"));
    damage_by(&of, "ALTER TABLE marks RENAME COLUMN is_end TO is_emd");
    assert_int_equal(salvage(&of), SJ_OK);
    assert_true(find_table(&of, "marks")->is_unknown);
    lab_file_remove(of.made);
    sj_salvaged_deinit(&of.salvaged);
    assert_int_equal(
        sj_database_salvage("/nowhere/lab.db", of.made, NULL, NULL, &of.salvaged, &of.error),
        SJ_ENOTFOUND);
    free(bytes);
    end_case(&of);
}

static void an_older_schema_is_brought_up_to_date(void **state)
{
    const int old_version = sj_database_version() - 1;
    salvage_case of;
    sqlite3 *database = NULL;
    begin_case(state, &of);
    write_file(of.damaged, (const uint8_t *)"", 0);
    assert_int_equal(sj_database_create_at(of.damaged, old_version, &database, &of.error), SJ_OK);
    assert_int_equal(
        sqlite3_exec(database,
                     "INSERT INTO sessions (session_id, uuid, device_id, name, started_realtime_ns,"
                     " started_ticks, tick_ns_numerator, tick_ns_denominator) VALUES (7,"
                     " randomblob(16), 3, 'old', 1, 1, 1, 1)",
                     NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(database);
    assert_int_equal(salvage(&of), SJ_OK);
    assert_int_equal(ask_number(of.made, "PRAGMA user_version"), sj_database_version());
    assert_int_equal(ask_number(of.made, "SELECT session_id FROM sessions WHERE name = 'old'"), 7);
    end_case(&of);
}

static void the_log_is_read_as_far_as_it_is_sound(void **state)
{
    enum { IN_FIRST_FRAME = 32 + 24 + 100 };
    static const long places[] = {0, 20, IN_FIRST_FRAME};
    salvage_case of;
    char pattern[128];
    glob_t left;
    begin_case(state, &of);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); ++i) {
        lab_file_run(of.lab, "PRAGMA wal_checkpoint(TRUNCATE);"
                             "UPDATE sessions SET name = 'in the log'; DELETE FROM marks WHERE"
                             " number = 1");
        copy_with_log(&of, places[i]);
        assert_int_equal(salvage(&of), SJ_OK);
        assert_int_equal(of.salvaged.log_is_damaged, places[i] != 0);
        assert_int_equal(sj_salvaged_is_whole(&of.salvaged), places[i] == 0);
        if (places[i] == 0) {
            assert_int_equal(
                ask_number(of.made, "SELECT count(*) FROM sessions WHERE name = 'in the log'"), 1);
        }
        lab_file_run(of.lab, "UPDATE sessions SET name = 'again'");
    }
    snprintf(pattern, sizeof(pattern), "%s.??????", of.made); /* the copy is gone */
    assert_int_equal(glob(pattern, 0, NULL, &left), GLOB_NOMATCH);
    end_case(&of);
}

static uint32_t draw(uint64_t *random, uint32_t below)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((*random >> 33) % below);
}

/* Damages random bytes, but never the schema. Returns how many rows may be wrong: a changed byte
 * within a value cannot be noticed. */
static unsigned damage(uint64_t seed, uint8_t *bytes, size_t *size)
{
    enum { MOST_FLIPS = 8, FIRST = 8 }; /* the pages before FIRST hold the schema */
    uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    const uint32_t pages = (uint32_t)(*size / PAGE_BYTES);
    const unsigned count = 1 + draw(&random, MOST_FLIPS);
    unsigned wrong = 0;
    for (unsigned i = 0; i < count; ++i) {
        const uint32_t page = FIRST + draw(&random, pages - FIRST);
        uint8_t *at = bytes + (size_t)page * PAGE_BYTES;
        switch (seed % 4) {
        case 0: /* zeroed pages */
            memset(at, 0, PAGE_BYTES);
            break;
        case 1: /* the end is cut */
            *size = (size_t)page * PAGE_BYTES + draw(&random, 2) * 100;
            return 0;
        case 2: /* half of a page was not written: at most the row across the middle is wrong */
            memset(at + PAGE_BYTES / 2, 0, PAGE_BYTES / 2);
            wrong++;
            break;
        default:
            at[draw(&random, PAGE_BYTES)] ^= (uint8_t)(1 + draw(&random, 255));
            wrong++;
        }
    }
    return wrong;
}

static void damage_causes_no_crash_and_no_false_row(void **state)
{
    const uint64_t damages = getenv("SJ_LONG") != NULL ? LONG_DAMAGES : DAMAGES;
    salvage_case of;
    begin_case(state, &of);
    size_t whole;
    uint8_t *bytes = read_file(of.was, &whole);
    for (uint64_t seed = 0; seed < damages; ++seed) {
        size_t size = whole;
        uint8_t *damaged = malloc(size);
        assert_non_null(damaged);
        memcpy(damaged, bytes, size);
        const unsigned wrong = damage(seed, damaged, &size);
        write_file(of.damaged, damaged, size);
        free(damaged);
        const sj_status status = salvage(&of);
        if (status == SJ_ECORRUPT) { /* the schema was damaged all the same */
            assert_non_null(strstr(of.error.text, "sojourn restore"));
            continue;
        }
        if (status != SJ_OK) {
            print_error("seed %llu: %s\n", (unsigned long long)seed, of.error.text);
        }
        assert_int_equal(status, SJ_OK);
        const long long found = count_wrong_rows(&of);
        if (found > wrong) {
            print_error("seed %llu: %lld wrong rows\n", (unsigned long long)seed, found);
        }
        assert_true(found <= wrong);
    }
    free(bytes);
    end_case(&of);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, lab_file_tear_down)

static const char *failing_text; /* statements with this text fail; NULL: none */
static int rows_before;          /* number of rows that they have before */

int __real_sqlite3_step(sqlite3_stmt *statement);
int __wrap_sqlite3_step(sqlite3_stmt *statement);
int __wrap_sqlite3_step(sqlite3_stmt *statement)
{
    if (failing_text != NULL && strstr(sqlite3_sql(statement), failing_text) != NULL &&
        rows_before-- == 0) {
        failing_text = NULL;
        return SQLITE_IOERR;
    }
    return __real_sqlite3_step(statement);
}

static void an_error_is_not_taken_for_the_last_row(void **state)
{
    static const char *const texts[] = {"SELECT name FROM sqlite_schema WHERE type = 'table'",
                                        "SELECT session_id FROM sessions AS s WHERE state",
                                        "foreign_key_list", "SELECT t.wr, c.name FROM"};
    salvage_case of;
    begin_case(state, &of);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
        failing_text = texts[i];
        rows_before = 0;
        assert_int_not_equal(
            sj_database_salvage(of.was, of.made, note, &of, &of.salvaged, &of.error), SJ_OK);
        assert_null(failing_text);
        sj_salvaged_deinit(&of.salvaged);
        lab_file_remove(of.made);
    }
    assert_int_equal(sj_database_salvage(of.was, of.made, note, &of, &of.salvaged, &of.error),
                     SJ_OK);
    end_case(&of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_error_is_not_taken_for_the_last_row), CASE(a_leaf_that_is_met_twice_is_noticed),
        CASE(a_database_in_use_is_refused),           CASE(a_foreign_log_is_left_out),
        CASE(a_sound_database_is_saved_whole),        CASE(rows_around_damaged_pages_are_saved),
        CASE(substitutes_keep_calls_readable),        CASE(lost_blocks_leave_gaps),
        CASE(an_unreadable_database_is_refused),      CASE(an_older_schema_is_brought_up_to_date),
        CASE(the_log_is_read_as_far_as_it_is_sound),  CASE(damage_causes_no_crash_and_no_false_row),
    };
    char folder[] = "/dev/shm/salvage_test.XXXXXX"; /* a sync costs nothing there */
    const bool is_in_memory = mkdtemp(folder) != NULL && chdir(folder) == 0;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return is_in_memory && rmdir(folder) != 0 ? 1 : failed;
}
