#include "collector-server/store/block_check.h"

#include "collector-server/store/block_files.h"
#include "collector-server/store/block_rules.h"
#include "collector-server/store/database.h"
#include "collector-server/store/sql.h"
#include "collector-server/store/stack_lookup.h"
#include "proto/base/array.h"
#include "proto/base/bisect.h"
#include "proto/callgraph/callgraph.h"
#include "schema/queries/checks/block_check.h"

#include <stdlib.h>
#include <string.h>

typedef struct function_range {
    int64_t first, count;
} function_range;

/* The function numbers of a session, sorted by first number. */
typedef struct known_functions {
    int64_t session_id; /* 0: no session was read */
    function_range *ranges;
    size_t count, capacity;
} known_functions;

struct sj_block_checker {
    sqlite3_stmt *row, *stack, *modules;
    /* Two readers, because a stack is read while the bytes of its block are in use. */
    sj_block_files *files, *stack_files;
    sj_block_decoder *decoder, *stack_decoder;
    sj_callgraph *graph;
    known_functions known;
    int64_t stream_id; /* stream of the block being checked */
    sj_error why;
};

/* The columns of a block's row. */
typedef struct block_row {
    sj_session_id session;
    int64_t session_id, stream;
    int64_t kind, first_event, event_count, first_call, call_count, lost_calls;
    sj_slice data;
} block_row;

static const char stack_sql[] = "SELECT storage, data FROM \"%w\".blocks WHERE stream_id = ?1 AND "
                                "kind = 2 AND first_event = ?2 AND quarantined IS NULL";
static const char modules_sql[] = "SELECT first_function, function_count FROM"
                                  " \"%w\".session_modules WHERE session_id = ?1 ORDER BY 1";

/* Prepares a statement from SQL text of sqlite3_mprintf, and frees the text. */
static sj_status prepare(sqlite3 *database, char *sql, sqlite3_stmt **statement, sj_error *error)
{
    if (sql == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory for checking blocks");
    }
    const int result = sqlite3_prepare_v2(database, sql, -1, statement, NULL);
    sqlite3_free(sql);
    return result == SQLITE_OK ? SJ_OK
                               : sj_fail(error, sj_database_status(result),
                                         "blocks cannot be checked: %s", sqlite3_errmsg(database));
}

static sj_status prepare_all(sj_block_checker *checker, sqlite3 *database, const char *schema,
                             sj_error *error)
{
    SJ_TRY(prepare(database, sqlite3_mprintf(sj_block_check_row_sql, schema, schema, schema),
                   &checker->row, error));
    SJ_TRY(prepare(database, sqlite3_mprintf(stack_sql, schema), &checker->stack, error));
    return prepare(database, sqlite3_mprintf(modules_sql, schema), &checker->modules, error);
}

sj_status sj_block_checker_new(sqlite3 *database, const char *schema, sj_block_checker **checker,
                               sj_error *error)
{
    sj_block_checker *made = calloc(1, sizeof(*made));
    if (made == NULL || sj_block_files_new(database, schema, &made->files) != SJ_OK ||
        sj_block_files_new(database, schema, &made->stack_files) != SJ_OK ||
        sj_block_decoder_new(&made->decoder) != SJ_OK ||
        sj_block_decoder_new(&made->stack_decoder) != SJ_OK ||
        sj_callgraph_new(&made->graph) != SJ_OK) {
        sj_block_checker_free(made);
        return sj_fail(error, SJ_ENOMEM, "no memory for checking blocks");
    }
    const sj_status status = prepare_all(made, database, schema, error);
    if (status != SJ_OK) {
        sj_block_checker_free(made);
        return status;
    }
    *checker = made;
    return SJ_OK;
}

void sj_block_checker_free(sj_block_checker *checker)
{
    if (checker == NULL) {
        return;
    }
    sqlite3_finalize(checker->row);
    sqlite3_finalize(checker->stack);
    sqlite3_finalize(checker->modules);
    sj_block_files_free(checker->files);
    sj_block_files_free(checker->stack_files);
    sj_block_decoder_free(checker->decoder);
    sj_block_decoder_free(checker->stack_decoder);
    sj_callgraph_free(checker->graph);
    free(checker->known.ranges);
    free(checker);
}

static int add_range(void *context, sqlite3_stmt *row)
{
    known_functions *known = context;
    if (sj_array_reserve(&known->ranges, &known->capacity, known->count, 1,
                         sizeof(*known->ranges)) != SJ_OK) {
        return SQLITE_NOMEM;
    }
    known->ranges[known->count++] = (function_range){.first = sqlite3_column_int64(row, 0),
                                                     .count = sqlite3_column_int64(row, 1)};
    return SQLITE_OK;
}

/* Reads the function numbers of a session, unless they were read already. If the row of a module
 * is damaged, its functions count as unknown. */
static sj_status read_functions(sj_block_checker *checker, int64_t session_id)
{
    known_functions *known = &checker->known;
    if (known->session_id == session_id) {
        return SJ_OK;
    }
    known->count = 0;
    known->session_id = 0;
    sqlite3_bind_int64(checker->modules, 1, session_id);
    const int result = sj_sql_scan(checker->modules, add_range, known);
    if (result != SQLITE_OK && !sj_database_is_damaged(result)) {
        return sj_database_status(result);
    }
    known->session_id = session_id;
    return SJ_OK;
}

static bool is_known(void *context, uint32_t function)
{
    const known_functions *known = context;
    /* the last range that begins at or before `function` is low - 1 */
    const size_t low = SJ_BISECT(0, known->count, i, known->ranges[i].first <= (int64_t)function);
    return low != 0 && known->ranges[low - 1].first >= 0 &&
           (int64_t)function - known->ranges[low - 1].first < known->ranges[low - 1].count;
}

static sj_status read_stack(void *context, uint32_t reference, sj_block *block)
{
    sj_block_checker *checker = context;
    sj_slice bytes;
    sqlite3_bind_int64(checker->stack, 1, checker->stream_id);
    sqlite3_bind_int64(checker->stack, 2, (int64_t)reference);
    const int result = sqlite3_step(checker->stack);
    sj_status status = result == SQLITE_DONE || sj_database_is_damaged(result)
                           ? SJ_ENOTFOUND
                           : sj_database_status(result);
    if (status == SJ_OK) {
        status =
            sj_block_files_get_columns(checker->stack_files, checker->stack, 0, 1, &bytes, NULL);
    }
    if (status == SJ_OK) {
        status = sj_block_decode(checker->stack_decoder, bytes, 0, block);
    }
    sqlite3_reset(checker->stack);
    return status;
}

static sj_status find_frames(void *context, uint32_t stream, uint32_t reference, uint32_t count,
                             sj_stack_frame *frames)
{
    sj_block_checker *checker = context;
    (void)stream;
    SJ_TRY(sj_stack_collect(read_stack, context, reference, count, frames));
    for (uint32_t i = 0; i < count; ++i) {
        if (!is_known(&checker->known, frames[i].function)) {
            return SJ_EINVAL;
        }
    }
    return SJ_OK;
}

static bool is_of_row(const block_row *row, const sj_block_header *header)
{
    const bool same = memcmp(&header->session, &row->session, sizeof(row->session)) == 0 &&
                      header->stream == row->stream && header->kind == row->kind &&
                      (int64_t)header->first_event == row->first_event &&
                      header->event_count == row->event_count;
    return same && (int64_t)header->first_call == row->first_call &&
           header->call_count == row->call_count && (int64_t)header->lost_calls == row->lost_calls;
}

static sj_status check_events(sj_block_checker *checker, const sj_block *block,
                              sj_block_verdict *verdict)
{
    sj_block_summary summary;
    const sj_status status =
        sj_callgraph_measure(checker->graph, block, find_frames, checker, &summary);
    if (status == SJ_ENOMEM) {
        return status;
    }
    verdict->is_away = status == SJ_EIO;
    verdict->fault = status == SJ_OK          ? NULL
                     : status == SJ_EIO       ? "the stack that it refers to is in a file that "
                                                "cannot be read"
                     : status == SJ_ENOTFOUND ? "the stack that it refers to is missing, or damaged"
                     : status == SJ_EINVAL ? "the stack that it refers to has an unknown function"
                                           : "its events contradict each other";
    return SJ_OK;
}

/* Checks the bytes of a row that has bytes. */
static sj_status check_bytes(sj_block_checker *checker, const block_row *row,
                             sj_block_verdict *verdict)
{
    sj_block block;
    const sj_status decoded = sj_block_decode(checker->decoder, row->data, SJ_WANT_ALL, &block);
    if (decoded != SJ_OK) {
        verdict->fault = sj_status_text(decoded);
        return decoded == SJ_ENOMEM ? decoded : SJ_OK;
    }
    if (!is_of_row(row, &block.header)) {
        verdict->fault = "its bytes are those of another block";
        return SJ_OK;
    }
    if (!sj_block_numbers_are_sound(&block.header)) {
        verdict->fault = "its header holds numbers out of range";
        return SJ_OK;
    }
    SJ_TRY(read_functions(checker, row->session_id));
    if (sj_block_check_functions(&block, is_known, &checker->known, &checker->why) != SJ_OK) {
        verdict->fault = checker->why.text;
    } else if (block.header.kind == SJ_BLOCK_CALLS) {
        return check_events(checker, &block, verdict);
    }
    return SJ_OK;
}

static void read_row(sj_block_checker *checker, block_row *row, sj_block_verdict *verdict)
{
    sqlite3_stmt *read = checker->row;
    *row = (block_row){.session_id = sqlite3_column_int64(read, 0),
                       .stream = sqlite3_column_int64(read, 3),
                       .kind = sqlite3_column_int64(read, 4),
                       .first_event = sqlite3_column_int64(read, 5),
                       .event_count = sqlite3_column_int64(read, 6),
                       .first_call = sqlite3_column_int64(read, 7),
                       .call_count = sqlite3_column_int64(read, 8),
                       .lost_calls = sqlite3_column_int64(read, 9)};
    *verdict = (sj_block_verdict){.session_id = row->session_id,
                                  .stream_id = sqlite3_column_int64(read, 2),
                                  .calls = row->call_count,
                                  .is_marked = sqlite3_column_int(read, 10) != 0};
    if (sqlite3_column_bytes(read, 1) == (int)sizeof(row->session.bytes)) {
        memcpy(row->session.bytes, sqlite3_column_blob(read, 1), sizeof(row->session.bytes));
    }
}

static sj_status check_row(sj_block_checker *checker, sj_block_verdict *verdict)
{
    block_row row;
    read_row(checker, &row, verdict);
    checker->stream_id = verdict->stream_id;
    checker->why.text[0] = '\0';
    const sj_status got =
        sj_block_files_get_columns(checker->files, checker->row, 11, 12, &row.data, &checker->why);
    if (got == SJ_ENOMEM) {
        return got;
    }
    verdict->has_bytes = got == SJ_OK && row.data.size != 0;
    verdict->is_away = got == SJ_EIO;
    if (verdict->has_bytes) {
        return check_bytes(checker, &row, verdict);
    }
    verdict->fault = checker->why.text[0] != '\0' ? checker->why.text : "its bytes are missing";
    return SJ_OK;
}

sj_status sj_block_checker_check(sj_block_checker *checker, int64_t block_id,
                                 sj_block_verdict *verdict)
{
    *verdict = (sj_block_verdict){0};
    sqlite3_bind_int64(checker->row, 1, block_id);
    const int result = sqlite3_step(checker->row);
    sj_status status = SJ_OK;
    if (result == SQLITE_ROW) {
        status = check_row(checker, verdict);
    } else if (result == SQLITE_DONE) {
        status = SJ_ENOTFOUND;
    } else if (sj_database_is_damaged(result)) {
        verdict->fault = "the page that it lies on is damaged";
    } else {
        status = sj_database_status(result);
    }
    sqlite3_reset(checker->row);
    return status;
}
