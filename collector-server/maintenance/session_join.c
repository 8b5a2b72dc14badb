/* Design notes
 *
 * Blocks of both parts are compared by the numbers of their events. A block whose events are all in
 * a block of the other part is left out. The larger of two blocks stays, so that both orders of
 * joining give the same result.
 *
 * A collector that gets the end of a session ends its streams with blocks of its own
 * (store/stream_ends.c). Such a block is wrong if the other part has later events. It is removed,
 * and the end is computed again. */
#include "collector-server/maintenance/session_join.h"

#include "collector-server/store/same_block.h"
#include "collector-server/store/sql.h"
#include "collector-server/store/verify.h"
#include "schema/queries/maintenance/session_join.h"

#include <stdio.h>
#include <string.h>

/* A row of a block, with the columns of session_join_blocks. */
typedef struct block_row {
    int64_t block_id;
    int64_t stream_id; /* in the target */
    int64_t kind;
    int64_t first_event;
    int64_t event_count;
    bool is_marked; /* the block cannot be read, or its bytes are missing */
    sqlite3_stmt *row;
} block_row;

enum { STORAGE_COLUMN = 5, DATA_COLUMN };

typedef enum block_choice {
    TAKE_BOTH,    /* no event is in both blocks */
    KEEP_OWN,     /* the target's block has all that is in the other one */
    TAKE_OTHER,   /* the source's block has all that is in the target's */
    CONTRADICTION /* the blocks cannot both be right */
} block_choice;

typedef struct join_run {
    sj_copy_job *copy;
    sj_block_files *own_files; /* reads moved blocks of the target */
    sj_block_decoder *own_decoder, *other_decoder;
    const block_row *other; /* the current block of the source */
    block_choice choice;    /* for `other`, after all overlapping blocks were seen */
} join_run;

/* True if no bytes of the block are stored (sj_block_files_get). */
static bool is_missing(sqlite3_stmt *row)
{
    const char *storage = (const char *)sqlite3_column_text(row, STORAGE_COLUMN);
    return sqlite3_column_type(row, DATA_COLUMN) == SQLITE_NULL &&
           (storage == NULL || strcmp(storage, "inline") == 0);
}

static block_row read_block(sqlite3_stmt *row)
{
    return (block_row){.block_id = sqlite3_column_int64(row, 0),
                       .stream_id = sqlite3_column_int64(row, 1),
                       .kind = sqlite3_column_int64(row, 2),
                       .first_event = sqlite3_column_int64(row, 3),
                       .event_count = sqlite3_column_int64(row, 4),
                       .is_marked = sqlite3_column_int64(row, 7) != 0 || is_missing(row),
                       .row = row};
}

static sj_status read_bytes(sj_block_files *files, const block_row *block, sj_slice *bytes,
                            sj_error *error)
{
    return sj_block_files_get_columns(files, block->row, STORAGE_COLUMN, DATA_COLUMN, bytes, error);
}

typedef struct table_rule {
    const char *table;
    const char *rows; /* NULL: not copied, because the rows follow from others */
} table_rule;

#define SKIP_KNOWN " ON CONFLICT DO NOTHING"
#define OF_NEW_REPORTS " AND r.report_id IN (SELECT old_id FROM temp.moved_reports)" SKIP_KNOWN

static const table_rule table_rules[] = {
    {"sessions", NULL},
    {"call_paths", NULL},
    {"function_stats", NULL},
    {"call_edges", NULL},
    {"slow_calls", NULL},
    {"timeline", NULL},
    {"block_outlines", NULL},
    {"blocks", " AND r.block_id IN (SELECT block_id FROM temp.joined_blocks)"},
    {"gaps", " AND (r.number IS NOT NULL OR r.block_id IN (SELECT block_id FROM"
             " temp.joined_blocks))" SKIP_KNOWN},
    {"open_calls",
     " AND r.stream_id NOT IN (SELECT v.old_id FROM temp.moved_streams AS v JOIN"
     " temp.wrong_ends AS w ON w.stream_id = v.new_id WHERE NOT w.is_own)" SKIP_KNOWN},
    {"reports", OF_NEW_REPORTS},
    {"zombie_reports", OF_NEW_REPORTS},
    {"zombie_frames", OF_NEW_REPORTS},
    {"zombie_events", OF_NEW_REPORTS},
    {"zombie_accounts", OF_NEW_REPORTS},
    {"annotations", " AND NOT EXISTS (SELECT 1 FROM main.annotations AS o WHERE o.session_id ="
                    " m.session_id AND o.note = r.note AND o.author = r.author AND"
                    " o.created_realtime_ns = r.created_realtime_ns)"},
    {"quarantined_blocks", " AND NOT EXISTS (SELECT 1 FROM main.quarantined_blocks AS o WHERE"
                           " o.session_id = m.session_id AND o.data = r.data)"},
    {"module_parts", " AND NOT EXISTS (SELECT 1 FROM main.session_modules AS o WHERE o.session_id ="
                     " m.session_id AND o.number = r.number)" SKIP_KNOWN},
    {"filtered_calls", " AND EXISTS (SELECT 1 FROM temp.new_filtered) ON CONFLICT DO UPDATE SET"
                       " calls = calls + excluded.calls, total_ns = total_ns + excluded.total_ns"},
};

const char *sj_session_join_rows(const char *table)
{
    for (size_t i = 0; i < sizeof(table_rules) / sizeof(table_rules[0]); ++i) {
        if (strcmp(table_rules[i].table, table) == 0) {
            return table_rules[i].rows;
        }
    }
    return SKIP_KNOWN;
}

sj_status sj_session_join_check(const sj_copy_job *copy)
{
    int64_t has_more = 0;
    SJ_TRY(sj_copy_number(copy, sj_session_join_has_more_sql, &has_more));
    return has_more != 0 ? SJ_OK : sj_fail(copy->error, SJ_EEXIST, "the session exists already");
}

static sj_status refuse(const sj_copy_job *copy, const char *why)
{
    return sj_fail(copy->error, SJ_EUNSUPPORTED,
                   "session %lld exists already, and its parts cannot be joined: %s",
                   (long long)copy->from, why);
}

static sj_status refuse_row(void *context, sqlite3_stmt *row)
{
    return refuse(context, (const char *)sqlite3_column_text(row, 0));
}

/* True if the block only ends all calls that are open, as the store does when a session ends. */
static bool is_stream_end(const sj_block *block)
{
    bool is_end = (block->header.flags & SJ_BLOCK_LAST) != 0 && block->header.event_count > 0 &&
                  block->header.call_count == 0 &&
                  block->ending_count == block->header.event_count &&
                  block->header.event_count == block->header.open_depth;
    for (size_t i = 0; is_end && i < block->ending_count; ++i) {
        is_end = block->endings[i].ending == SJ_ENDING_OPEN;
    }
    return is_end;
}

static sj_status note_wrong_end(const join_run *run, int64_t stream_id, bool is_own)
{
    return sj_sql_each(run->copy->target, "INSERT OR IGNORE INTO temp.wrong_ends VALUES (?1, ?2)",
                       SJ_SQL_INTS(stream_id, is_own), NULL, NULL, run->copy->error);
}

static bool is_within(const block_row *inner, const block_row *outer)
{
    return inner->first_event >= outer->first_event &&
           inner->first_event + inner->event_count <= outer->first_event + outer->event_count;
}

/* Chooses between two ends of a stream, or between an end and other events. Such an end is right
 * only if nothing follows it. */
static sj_status choose_end(join_run *run, const block_row *own, const sj_block *own_block,
                            const sj_block *other_block, block_choice *choice)
{
    const bool own_ends = is_stream_end(own_block);
    const bool other_ends = is_stream_end(other_block);
    if (!own_ends && !other_ends) {
        *choice = CONTRADICTION;
        return SJ_OK;
    }
    *choice =
        own_ends && (!other_ends || other_block->header.last_ticks > own_block->header.last_ticks)
            ? TAKE_OTHER
            : KEEP_OWN;
    return note_wrong_end(run, own->stream_id, *choice == TAKE_OTHER);
}

static sj_status compare(join_run *run, const block_row *own, sj_slice own_bytes,
                         sj_slice other_bytes, block_choice *choice)
{
    sj_block own_block;
    sj_block other_block;
    *choice = CONTRADICTION;
    if (own_bytes.size == other_bytes.size &&
        memcmp(own_bytes.data, other_bytes.data, own_bytes.size) == 0) {
        *choice = KEEP_OWN;
        return SJ_OK;
    }
    const sj_status status = sj_block_decode(run->own_decoder, own_bytes, SJ_WANT_ALL, &own_block);
    if (status != SJ_OK) {
        return status == SJ_ENOMEM ? status : SJ_OK;
    }
    SJ_TRY(sj_block_decode(run->other_decoder, other_bytes, SJ_WANT_ALL, &other_block));
    if (is_within(run->other, own) && sj_block_covers(&own_block, &other_block)) {
        *choice = KEEP_OWN;
    } else if (is_within(own, run->other) && sj_block_covers(&other_block, &own_block)) {
        *choice = TAKE_OTHER;
    } else {
        return choose_end(run, own, &own_block, &other_block, choice);
    }
    return SJ_OK;
}

/* Chooses between the current block of the source and a block of the target that shares events with
 * it. */
static sj_status choose(join_run *run, const block_row *own, block_choice *choice)
{
    sj_slice own_bytes;
    sj_slice other_bytes;
    sj_error *error = run->copy->error;
    if (run->other->is_marked) {
        *choice = KEEP_OWN;
        return SJ_OK;
    }
    if (own->is_marked) {
        *choice = is_within(own, run->other) ? TAKE_OTHER : CONTRADICTION;
        return SJ_OK;
    }
    SJ_TRY(read_bytes(run->copy->files, run->other, &other_bytes, error));
    SJ_TRY(read_bytes(run->own_files, own, &own_bytes, error));
    return compare(run, own, own_bytes, other_bytes, choice);
}

static sj_status refuse_block(const join_run *run)
{
    char why[160];
    snprintf(why, sizeof(why),
             "both have events %lld to %lld of stream %lld, and they differ in them",
             (long long)run->other->first_event,
             (long long)(run->other->first_event + run->other->event_count),
             (long long)run->other->stream_id);
    return refuse(run->copy, why);
}

static sj_status add_block(const join_run *run, const char *sql, int64_t block_id)
{
    return sj_sql_each(run->copy->target, sql, SJ_SQL_INTS(block_id), NULL, NULL, run->copy->error);
}

/* Compares a block of the target with the current block of the source. Returns SJ_ENOTFOUND to end
 * the search, because all further blocks are earlier. */
static sj_status see_own_block(void *context, sqlite3_stmt *row)
{
    join_run *run = context;
    const block_row own = read_block(row);
    block_choice choice;
    if (own.event_count > 0 && own.first_event + own.event_count <= run->other->first_event) {
        return SJ_ENOTFOUND;
    }
    SJ_TRY(choose(run, &own, &choice));
    if (choice == CONTRADICTION || (run->choice != TAKE_BOTH && run->choice != choice)) {
        return refuse_block(run);
    }
    run->choice = choice;
    return choice == TAKE_OTHER
               ? add_block(run, "INSERT OR IGNORE INTO temp.replaced_blocks VALUES (?1)",
                           own.block_id) /* several blocks may replace an end */
               : SJ_OK;
}

static sj_status see_other_block(void *context, sqlite3_stmt *row)
{
    join_run *run = context;
    const block_row other = read_block(row);
    const bool is_empty = other.event_count == 0;
    run->other = &other;
    run->choice = TAKE_BOTH;
    const sj_status status = sj_sql_each(
        run->copy->target, is_empty ? sj_session_join_empty_sql : sj_session_join_overlapping_sql,
        SJ_SQL_INTS(other.stream_id, other.kind, other.first_event + other.event_count),
        see_own_block, run, run->copy->error);
    if (status != SJ_OK && status != SJ_ENOTFOUND) {
        return status;
    }
    return run->choice != KEEP_OWN
               ? add_block(run, "INSERT INTO temp.joined_blocks VALUES (?1)", other.block_id)
               : SJ_OK;
}

/* Removes a block of one part if it ends its stream, because the other part has later events. */
static sj_status drop_early_end(const join_run *run, sqlite3_stmt *row, bool is_own)
{
    sj_block block;
    sj_slice bytes;
    const block_row end = read_block(row);
    if (end.is_marked) {
        return SJ_OK;
    }
    SJ_TRY(read_bytes(is_own ? run->own_files : run->copy->files, &end, &bytes, run->copy->error));
    const sj_status status = sj_block_decode(run->own_decoder, bytes, SJ_WANT_ALL, &block);
    if (status != SJ_OK || !is_stream_end(&block)) {
        return status == SJ_ENOMEM ? status : SJ_OK;
    }
    SJ_TRY(note_wrong_end(run, end.stream_id, is_own));
    return add_block(run,
                     is_own ? "INSERT INTO temp.replaced_blocks VALUES (?1)"
                            : "DELETE FROM temp.joined_blocks WHERE block_id = ?1",
                     end.block_id);
}

static sj_status see_own_end(void *run, sqlite3_stmt *row)
{
    return drop_early_end(run, row, true);
}

static sj_status see_other_end(void *run, sqlite3_stmt *row)
{
    return drop_early_end(run, row, false);
}

static sj_status choose_blocks(join_run *run)
{
    sqlite3 *target = run->copy->target;
    sj_error *error = run->copy->error;
    SJ_TRY(sj_sql_each(target, sj_session_join_blocks_sql, (sj_sql_binds){0}, see_other_block, run,
                       error));
    SJ_TRY(sj_sql_each(target, sj_session_join_own_ends_sql, (sj_sql_binds){0}, see_own_end, run,
                       error));
    return sj_sql_each(target, sj_session_join_other_ends_sql, (sj_sql_binds){0}, see_other_end,
                       run, error);
}

sj_status sj_session_join_begin(sj_copy_job *copy)
{
    join_run run = {.copy = copy};
    SJ_TRY(sj_sql_each(copy->target, sj_session_join_conflict_sql, SJ_SQL_INTS(copy->from),
                       refuse_row, copy, copy->error));
    SJ_TRY(sj_copy_run(copy, "joining", sj_session_join_tables_sql));
    sj_status status = SJ_ENOMEM;
    if (sj_block_files_new(copy->target, "main", &run.own_files) == SJ_OK &&
        sj_block_decoder_new(&run.own_decoder) == SJ_OK &&
        sj_block_decoder_new(&run.other_decoder) == SJ_OK) {
        status = choose_blocks(&run);
    } else {
        sj_fail(copy->error, status, "no memory for joining a session");
    }
    sj_block_files_free(run.own_files);
    sj_block_decoder_free(run.own_decoder);
    sj_block_decoder_free(run.other_decoder);
    SJ_TRY(status);
    copy->changes_before = sqlite3_total_changes64(copy->target);
    return sj_copy_run(copy, "joining", sj_session_join_remove_sql);
}

sj_status sj_session_join_end(const sj_copy_job *copy)
{
    SJ_TRY(sj_copy_run(copy, "joining", sj_session_join_merge_sql));
    if (sqlite3_total_changes64(copy->target) == copy->changes_before) {
        return sj_fail(copy->error, SJ_EEXIST, "the session exists already");
    }
    return sj_store_rebuild_changed(copy->target, copy->to, copy->error);
}
