/* Design notes. Calls are read in the order of their entries, so a single pass with a stack of open
 * calls finds the call path of each call. A second query reads the values in the same order. Values
 * may be long: memory has only their beginning, and a hash of all bytes to find equal values. */
#include "collector-server/cli/tree_values.h"

#include "collector-server/store/sql.h"
#include "proto/base/array.h"
#include "proto/base/bisect.h"
#include "proto/base/hash_map.h"
#include "schema/queries/cli/tree_values.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ELLIPSIS "\xe2\x80\xa6"

enum { MOST_ITEMS = 65536, TEXT_BYTES = 1024, NO_PARENT = UINT32_MAX };

typedef struct open_call {
    int64_t call_id;
    uint32_t path; /* index in `paths`; 0: the call path is unknown or was folded */
} open_call;

struct sj_tree_values {
    int64_t *paths; /* path_ids in ascending order; index 0 is the caller of all roots */
    size_t path_count, path_capacity;
    /* to an index in `paths`: (function_id, index of the caller), and (path_id, NO_PARENT) */
    sj_hash_map places;
    sj_hash_map names; /* (function_id, position) to index in `name_texts` + 1 */
    char **name_texts;
    size_t name_count, name_capacity;
    sj_path_values *items;
    size_t count, capacity;
    sj_hash_map texts; /* (hash, index of the path) to index in `items` + 1 */
    open_call *open;   /* a stack, the innermost call last */
    size_t depth, open_capacity;
    int64_t left_out; /* number of calls with values that are in no item */
};

/* A list of values as text. */
typedef struct value_list {
    char text[TEXT_BYTES];
    uint64_t bytes; /* length of the whole text; if TEXT_BYTES or more, `text` is cut */
    uint64_t hash;  /* hash of the whole text */
} value_list;

/* The values of one call as text. */
typedef struct value_text {
    value_list arguments;
    value_list results;
} value_text;

void sj_tree_values_free(sj_tree_values *values)
{
    if (values == NULL) {
        return;
    }
    for (size_t i = 0; i < values->count; i++) {
        free(values->items[i].text);
    }
    for (size_t i = 0; i < values->name_count; i++) {
        free(values->name_texts[i]);
    }
    sj_hash_map_deinit(&values->places);
    sj_hash_map_deinit(&values->names);
    sj_hash_map_deinit(&values->texts);
    free(values->paths);
    free(values->name_texts);
    free(values->items);
    free(values->open);
    free(values);
}

static uint32_t find_in_map(const sj_hash_map *map, uint64_t key, uint32_t sub)
{
    const sj_hash_entry *entry = sj_hash_map_find(map, key, sub);
    return entry != NULL ? entry->first : 0;
}

static sj_status put_in_map(sj_hash_map *map, uint64_t key, uint32_t sub, size_t place)
{
    const sj_hash_entry entry = {.key = key, .sub = sub, .first = (uint32_t)place};
    return sj_hash_map_put(map, &entry);
}

/* Adds the path of a row. Rows must be sorted by path_id: a caller has a lower path_id than its
 * callees. */
static sj_status add_path(void *context, sqlite3_stmt *row)
{
    sj_tree_values *values = context;
    const int64_t path_id = sqlite3_column_int64(row, 0);
    const bool is_root = sqlite3_column_type(row, 1) == SQLITE_NULL;
    const uint32_t parent =
        is_root ? 0
                : find_in_map(&values->places, (uint64_t)sqlite3_column_int64(row, 1), NO_PARENT);
    SJ_TRY(sj_array_reserve(&values->paths, &values->path_capacity, values->path_count, 1,
                            sizeof(*values->paths)));
    const size_t place = values->path_count++;
    values->paths[place] = path_id;
    SJ_TRY(put_in_map(&values->places, (uint64_t)path_id, NO_PARENT, place));
    return parent != 0 || is_root
               ? put_in_map(&values->places, (uint64_t)sqlite3_column_int64(row, 2), parent, place)
               : SJ_OK;
}

static sj_status add_name(void *context, sqlite3_stmt *row)
{
    sj_tree_values *values = context;
    SJ_TRY(sj_array_reserve(&values->name_texts, &values->name_capacity, values->name_count, 1,
                            sizeof(*values->name_texts)));
    char *text = strdup((const char *)sqlite3_column_text(row, 2));
    if (text == NULL) {
        return SJ_ENOMEM;
    }
    values->name_texts[values->name_count++] = text;
    return put_in_map(&values->names, (uint64_t)sqlite3_column_int64(row, 0),
                      (uint32_t)sqlite3_column_int64(row, 1), values->name_count);
}

/* Continues an FNV-1a hash with `data`. */
static uint64_t extend_hash(uint64_t hash, const void *data, size_t bytes)
{
    for (const uint8_t *byte = data; bytes != 0; byte++, bytes--) {
        hash = (hash ^ *byte) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static void clear_list(value_list *list)
{
    list->text[0] = '\0';
    list->bytes = 0;
    list->hash = UINT64_C(0xcbf29ce484222325);
}

/* Replaces the end of the text with an ellipsis, after a whole character. */
static void cut_short(char text[TEXT_BYTES])
{
    size_t end = TEXT_BYTES - sizeof(ELLIPSIS);
    while (end > 0 && ((uint8_t)text[end] & 0xc0) == 0x80) {
        end--;
    }
    memcpy(text + end, ELLIPSIS, sizeof(ELLIPSIS));
}

static void append_text(value_list *list, const char *text)
{
    const size_t bytes = strlen(text);
    list->hash = extend_hash(list->hash, text, bytes);
    if (list->bytes < TEXT_BYTES) {
        snprintf(list->text + list->bytes, TEXT_BYTES - list->bytes, "%s", text);
        if (list->bytes + bytes >= TEXT_BYTES) {
            cut_short(list->text);
        }
    }
    list->bytes += bytes;
}

static void append_named(value_list *list, const char *name, const char *sign, const char *text)
{
    append_text(list, list->bytes != 0 ? ", " : "");
    append_text(list, name);
    append_text(list, sign);
    append_text(list, text);
}

static void append_value(const sj_tree_values *values, int64_t function_id, sqlite3_stmt *row,
                         value_text *text)
{
    const int64_t position = sqlite3_column_int64(row, 1);
    const char *kind = (const char *)sqlite3_column_text(row, 2);
    const char *value = (const char *)sqlite3_column_text(row, 3);
    if (position == 0) {
        const bool is_named = strcmp(kind, "errno") == 0 || strcmp(kind, "thrown") == 0;
        append_named(&text->results, is_named ? kind : "", is_named ? " " : "", value);
        return;
    }
    const uint32_t name = find_in_map(&values->names, (uint64_t)function_id, (uint32_t)position);
    append_named(&text->arguments, name != 0 ? values->name_texts[name - 1] : "",
                 name != 0 ? "=" : "", value);
}

/* Reads the values of a call. On entry, the statement `row` is at a value of this call or of
 * another one. Skips values of earlier calls. On return, `row` is at the first value of a later
 * call, and `result` is the latest result of sqlite3_step. Returns false if the call has no
 * values. */
static bool read_values(const sj_tree_values *values, int64_t call_id, int64_t function_id,
                        sqlite3_stmt *row, int *result, value_text *text)
{
    int64_t position = -1;
    char kind[16] = "";
    clear_list(&text->arguments);
    clear_list(&text->results);
    while (*result == SQLITE_ROW && sqlite3_column_int64(row, 0) < call_id) {
        *result = sqlite3_step(row);
    }
    while (*result == SQLITE_ROW && sqlite3_column_int64(row, 0) == call_id) {
        /* Several rules may have stored the same value. */
        if (sqlite3_column_int64(row, 1) != position ||
            strcmp((const char *)sqlite3_column_text(row, 2), kind) != 0) {
            append_value(values, function_id, row, text);
        }
        position = sqlite3_column_int64(row, 1);
        snprintf(kind, sizeof(kind), "%s", (const char *)sqlite3_column_text(row, 2));
        *result = sqlite3_step(row);
    }
    return position >= 0;
}

static uint64_t hash_values(const value_text *text)
{
    const uint64_t parts[] = {text->arguments.hash, text->arguments.bytes, text->results.hash,
                              text->results.bytes};
    const uint64_t hash = extend_hash(text->arguments.hash, parts, sizeof(parts));
    return hash != 0 ? hash : 1;
}

/* Finds or adds the item for a path's calls with these values. Returns NULL if out of memory, or if
 * a new item would exceed MOST_ITEMS. */
static sj_path_values *find_or_add_item(sj_tree_values *values, uint32_t path, const char *text,
                                        uint64_t hash)
{
    uint64_t key = hash;
    uint32_t place;
    while ((place = find_in_map(&values->texts, key, path)) != 0) {
        const sj_path_values *item = &values->items[place - 1];
        if (item->hash == hash && strcmp(item->text, text) == 0) {
            return &values->items[place - 1];
        }
        key++; /* this entry has another text */
    }
    if (values->count == MOST_ITEMS ||
        sj_array_reserve(&values->items, &values->capacity, values->count, 1,
                         sizeof(*values->items)) != SJ_OK) {
        return NULL;
    }
    char *copy = strdup(text);
    if (copy == NULL || put_in_map(&values->texts, key, path, values->count + 1) != SJ_OK) {
        free(copy);
        return NULL;
    }
    values->items[values->count] =
        (sj_path_values){.path_id = values->paths[path], .text = copy, .hash = hash};
    return &values->items[values->count++];
}

static void count_call(sj_tree_values *values, uint32_t path, const value_text *text, int64_t ns)
{
    char text_of_both[2 * TEXT_BYTES + 8];
    snprintf(text_of_both, sizeof(text_of_both), "(%s)%s%s", text->arguments.text,
             text->results.bytes != 0 ? " = " : "", text->results.text);
    sj_path_values *item =
        path != 0 ? find_or_add_item(values, path, text_of_both, hash_values(text)) : NULL;
    if (item == NULL) {
        values->left_out++;
        return;
    }
    item->calls++;
    item->total_ns += ns;
}

/* Pushes a call on the stack of open calls, after removing the calls that have ended. Writes the
 * index of its call path to `*path`. */
static sj_status push_call(sj_tree_values *values, sqlite3_stmt *call, uint32_t *path)
{
    const bool is_root = sqlite3_column_type(call, 1) == SQLITE_NULL;
    const int64_t parent_id = sqlite3_column_int64(call, 1);
    while (values->depth != 0 &&
           (is_root || values->open[values->depth - 1].call_id != parent_id)) {
        values->depth--;
    }
    const uint32_t caller_path = values->depth != 0 ? values->open[values->depth - 1].path : 0;
    *path = caller_path != 0 || is_root
                ? find_in_map(&values->places, (uint64_t)sqlite3_column_int64(call, 2), caller_path)
                : 0;
    SJ_TRY(sj_array_reserve(&values->open, &values->open_capacity, values->depth, 1,
                            sizeof(*values->open)));
    values->open[values->depth++] =
        (open_call){.call_id = sqlite3_column_int64(call, 0), .path = *path};
    return SJ_OK;
}

/* Reads calls and values side by side, until the values end. The loop steps two statements, so
 * sj_sql_scan cannot run it. */
static sj_status count_values(sj_tree_values *values, sqlite3_stmt *call, sqlite3_stmt *row,
                              int *result)
{
    value_text text;
    int values_result = sqlite3_step(row);
    while (values_result == SQLITE_ROW && (*result = sqlite3_step(call)) == SQLITE_ROW) {
        uint32_t path = 0;
        SJ_TRY(push_call(values, call, &path));
        if (read_values(values, sqlite3_column_int64(call, 0), sqlite3_column_int64(call, 2), row,
                        &values_result, &text)) {
            count_call(values, path, &text, sqlite3_column_int64(call, 3));
        }
    }
    *result = values_result != SQLITE_ROW && values_result != SQLITE_DONE ? values_result : *result;
    return SJ_OK;
}

static sj_status read_calls(sqlite3 *database, int64_t session_id, sj_tree_values *values,
                            sj_error *error)
{
    static const char calls_sql[] =
        "SELECT call_id, parent_id, function_id, duration_ns FROM calls "
        "WHERE session_id = ?1 ORDER BY call_id";
    sqlite3_stmt *call = NULL;
    sqlite3_stmt *row = NULL;
    sj_status status = SJ_OK;
    int result = sqlite3_prepare_v2(database, calls_sql, -1, &call, NULL);
    if (result == SQLITE_OK) {
        result = sqlite3_prepare_v2(database, sj_tree_values_sql, -1, &row, NULL);
    }
    if (result == SQLITE_OK) {
        sqlite3_bind_int64(call, 1, session_id);
        sqlite3_bind_int64(row, 1, session_id);
        result = SQLITE_DONE;
        status = count_values(values, call, row, &result);
    }
    sqlite3_finalize(call);
    sqlite3_finalize(row);
    if (status != SJ_OK) {
        return sj_fail(error, status, "the tree's values: %s", sj_status_text(status));
    }
    return result == SQLITE_DONE || result == SQLITE_ROW
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "%s", sqlite3_errmsg(database));
}

static int compare_items(const void *left, const void *right)
{
    const sj_path_values *a = left;
    const sj_path_values *b = right;
    if (a->path_id != b->path_id) {
        return a->path_id < b->path_id ? -1 : 1;
    }
    if (a->total_ns != b->total_ns) {
        return a->total_ns > b->total_ns ? -1 : 1;
    }
    return a->calls != b->calls ? (a->calls > b->calls ? -1 : 1) : strcmp(a->text, b->text);
}

static sj_status read_groups(sqlite3 *database, int64_t session_id, sj_tree_values *values,
                             sj_error *error)
{
    static const char paths_sql[] = "SELECT path_id, parent_path_id, function_id FROM call_paths "
                                    "WHERE session_id = ?1 AND rare = 0 ORDER BY path_id";
    static const char names_sql[] =
        "SELECT function_id, position, max(name) FROM value_types WHERE session_id = ?1 "
        "AND name <> '' AND function_id IS NOT NULL GROUP BY 1, 2";
    if (sj_array_reserve(&values->paths, &values->path_capacity, 0, 1, sizeof(*values->paths)) !=
        SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    values->path_count = 1; /* the common root */
    const sj_sql_binds session = SJ_SQL_INTS(session_id);
    SJ_TRY(sj_sql_each(database, paths_sql, session, add_path, values, error));
    SJ_TRY(sj_sql_each(database, names_sql, session, add_name, values, error));
    SJ_TRY(read_calls(database, session_id, values, error));
    if (values->count != 0) {
        qsort(values->items, values->count, sizeof(*values->items), compare_items);
    }
    return SJ_OK;
}

sj_status sj_tree_values_read(sqlite3 *database, int64_t session_id, sj_tree_values **values,
                              sj_error *error)
{
    sj_tree_values *values_new = calloc(1, sizeof(*values_new));
    if (values_new == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const sj_status status = read_groups(database, session_id, values_new, error);
    if (status != SJ_OK) {
        sj_tree_values_free(values_new);
        return status;
    }
    *values = values_new;
    return SJ_OK;
}

size_t sj_tree_values_of(const sj_tree_values *values, int64_t path_id, const sj_path_values **of)
{
    const size_t low = SJ_BISECT(0, values->count, i, values->items[i].path_id < path_id);
    size_t end = low;
    while (end < values->count && values->items[end].path_id == path_id) {
        end++;
    }
    *of = low < values->count ? &values->items[low] : NULL;
    return end - low;
}

int64_t sj_tree_values_left_out(const sj_tree_values *values)
{
    return values->left_out;
}
