/* Design notes. Each function has a list of chunks. Chunks double in size up to a page, so that a
 * rarely called function uses little memory. A value below 65,535 takes two bytes, as most
 * durations do; a larger value takes ten. Rows without values are only counted. A list is read
 * once, in order: its runs in the file, oldest first, then its chunks. */
#include "collector-server/query/function_groups.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_CHUNK_BYTES = 64,
    MAX_CHUNK_BYTES = 4096,
    FIRST_LISTS = 256,
    WIDE_VALUE_BYTES = 10,
    PIECE_BYTES = SJ_SPILL_MOST_BYTES
};

#define WIDE_MARK UINT16_MAX

struct sj_group_chunk {
    sj_group_chunk *next;
    uint32_t used, capacity; /* `used` of the last chunk is set by close_chunk */
    uint8_t bytes[];
};

/* A run: rows of one function, one after the other in the temporary file. */
struct sj_group_run {
    sj_group_run *next;
    int64_t offset, bytes;
};

/* --- functions ---------------------------------------------------------------------------------
 */

static size_t find_slot(const sj_function_groups *groups, int64_t function_id)
{
    const uint64_t hash = (uint64_t)function_id * UINT64_C(0x9e3779b97f4a7c15);
    size_t place = (size_t)(hash >> 32) & (groups->table_capacity - 1);
    while (groups->table[place] != 0 &&
           groups->lists[groups->table[place] - 1].function_id != function_id) {
        place = (place + 1) & (groups->table_capacity - 1);
    }
    return place;
}

static int grow_lists(sj_function_groups *groups)
{
    const size_t capacity = groups->list_capacity != 0 ? groups->list_capacity * 2 : FIRST_LISTS;
    sj_group_list *lists = realloc(groups->lists, capacity * sizeof(*lists));
    groups->lists = lists != NULL ? lists : groups->lists;
    uint32_t *table = calloc(capacity * 2, sizeof(*table));
    if (lists == NULL || table == NULL) {
        free(table);
        return SQLITE_NOMEM;
    }
    free(groups->table);
    groups->table = table;
    groups->table_capacity = capacity * 2;
    groups->list_capacity = capacity;
    for (size_t i = 0; i < groups->list_count; ++i) {
        table[find_slot(groups, lists[i].function_id)] = (uint32_t)i + 1;
    }
    return SQLITE_OK;
}

/* Finds the list of a function, or adds it. */
static int find_list(sj_function_groups *groups, int64_t function_id, uint32_t *list)
{
    if (groups->list_count == groups->list_capacity) {
        const int grown = grow_lists(groups);
        if (grown != SQLITE_OK) {
            return grown;
        }
    }
    const size_t place = find_slot(groups, function_id);
    if (groups->table[place] == 0) {
        groups->lists[groups->list_count++] = (sj_group_list){.function_id = function_id};
        groups->table[place] = (uint32_t)groups->list_count;
    }
    *list = groups->table[place] - 1;
    return SQLITE_OK;
}

/* Writes the list of each entry of the batch's dictionary to entry_lists. */
static int map_batch(sj_function_groups *groups)
{
    const sj_group_batch *batch = &groups->batch;
    if (batch->function_count > groups->entry_capacity) {
        uint32_t *lists = realloc(groups->entry_lists, batch->function_count * sizeof(*lists));
        if (lists == NULL) {
            return SQLITE_NOMEM;
        }
        groups->entry_lists = lists;
        groups->entry_capacity = batch->function_count;
    }
    for (size_t i = 0; i < batch->function_count; ++i) {
        const int found = find_list(groups, batch->function_ids[i], &groups->entry_lists[i]);
        if (found != SQLITE_OK) {
            return found;
        }
    }
    return SQLITE_OK;
}

/* --- storing rows
 * ------------------------------------------------------------------------------ */

static void free_chunks(sj_function_groups *groups, sj_group_list *list)
{
    while (list->first != NULL) {
        sj_group_chunk *next = list->first->next;
        groups->held_bytes -= sizeof(*list->first) + list->first->capacity;
        free(list->first);
        list->first = next;
    }
    list->last = NULL;
    list->at = list->end = NULL;
}

static void free_rows(sj_function_groups *groups, sj_group_list *list)
{
    free_chunks(groups, list);
    while (list->first_run != NULL) {
        sj_group_run *next = list->first_run->next;
        free(list->first_run);
        list->first_run = next;
    }
    list->last_run = NULL;
    list->rows = 0;
}

static void close_chunk(sj_group_list *list)
{
    if (list->last != NULL) {
        list->last->used = (uint32_t)(list->at - list->last->bytes);
    }
}

/* Appends the collected bytes of groups->piece to the file. */
static int flush_piece(sj_function_groups *groups, size_t *collected_bytes)
{
    const int result = *collected_bytes != 0
                           ? sj_spill_append(&groups->spill, groups->piece, *collected_bytes)
                           : SQLITE_OK;
    *collected_bytes = 0;
    return result;
}

/* Moves the rows of one list to groups->piece, and to the file when that is full. Adds a run for
 * them. */
static int spill_list(sj_function_groups *groups, sj_group_list *list, size_t *collected_bytes)
{
    sj_group_run *run = malloc(sizeof(*run));
    if (run == NULL) {
        return SQLITE_NOMEM;
    }
    *run = (sj_group_run){.offset = groups->spill.size + (int64_t)*collected_bytes};
    *(list->last_run != NULL ? &list->last_run->next : &list->first_run) = run;
    list->last_run = run;
    close_chunk(list);
    for (const sj_group_chunk *chunk = list->first; chunk != NULL; chunk = chunk->next) {
        if (*collected_bytes + chunk->used > PIECE_BYTES) {
            const int result = flush_piece(groups, collected_bytes);
            if (result != SQLITE_OK) {
                return result;
            }
        }
        memcpy(groups->piece + *collected_bytes, chunk->bytes, chunk->used);
        *collected_bytes += chunk->used;
        run->bytes += chunk->used;
    }
    free_chunks(groups, list);
    return SQLITE_OK;
}

/* Moves the rows of all lists to the file. */
static int spill_all(sj_function_groups *groups)
{
    size_t collected_bytes = 0;
    int result = SQLITE_OK;
    for (size_t i = 0; i < groups->list_count && result == SQLITE_OK; ++i) {
        if (groups->lists[i].first != NULL) {
            result = spill_list(groups, &groups->lists[i], &collected_bytes);
        }
    }
    return result == SQLITE_OK ? flush_piece(groups, &collected_bytes) : result;
}

/* Adds a chunk to a list. If the memory limit is reached, moves all rows to the file before. */
static int add_chunk(sj_function_groups *groups, sj_group_list *list)
{
    const uint32_t least = (uint32_t)groups->column_count * WIDE_VALUE_BYTES;
    const size_t limit = groups->limit_bytes != 0 ? groups->limit_bytes : SJ_GROUP_DEFAULT_BYTES;
    uint32_t capacity = list->last != NULL ? list->last->capacity * 2 : FIRST_CHUNK_BYTES;
    capacity = capacity < MAX_CHUNK_BYTES ? capacity : MAX_CHUNK_BYTES;
    capacity = capacity > least ? capacity : least;
    close_chunk(list);
    if (groups->held_bytes != 0 && groups->held_bytes + capacity > limit) {
        const int spilled = spill_all(groups);
        if (spilled != SQLITE_OK) {
            return spilled;
        }
    }
    sj_group_chunk *chunk = malloc(sizeof(*chunk) + capacity);
    if (chunk == NULL) {
        return SQLITE_NOMEM;
    }
    *chunk = (sj_group_chunk){.capacity = capacity};
    *(list->last != NULL ? &list->last->next : &list->first) = chunk;
    list->last = chunk;
    list->at = chunk->bytes;
    list->end = chunk->bytes + capacity;
    groups->held_bytes += sizeof(*chunk) + capacity;
    return SQLITE_OK;
}

static inline uint8_t *put_value(uint8_t *at, int64_t value)
{
    const uint16_t narrow = (uint64_t)value < WIDE_MARK ? (uint16_t)value : WIDE_MARK;
    memcpy(at, &narrow, sizeof(narrow));
    if (__builtin_expect(narrow == WIDE_MARK, 0)) {
        memcpy(at + sizeof(narrow), &value, sizeof(value));
        return at + WIDE_VALUE_BYTES;
    }
    return at + sizeof(narrow);
}

static inline const uint8_t *get_value(const uint8_t *at, int64_t *value)
{
    uint16_t narrow;
    memcpy(&narrow, at, sizeof(narrow));
    if (__builtin_expect(narrow == WIDE_MARK, 0)) {
        memcpy(value, at + sizeof(narrow), sizeof(*value));
        return at + WIDE_VALUE_BYTES;
    }
    *value = narrow;
    return at + sizeof(narrow);
}

/* Adds the rows of the batch to their lists. Inline, because it is fastest with a constant number
 * of columns. */
static inline int hold_batch(sj_function_groups *groups, size_t columns)
{
    const sj_group_batch *batch = &groups->batch;
    const ptrdiff_t most = (ptrdiff_t)columns * WIDE_VALUE_BYTES;
    for (size_t row = 0; row < batch->row_count; ++row) {
        sj_group_list *list = &groups->lists[groups->entry_lists[batch->entries[row]]];
        if (list->end - list->at < most) {
            const int result = add_chunk(groups, list);
            if (result != SQLITE_OK) {
                return result;
            }
        }
        uint8_t *at = list->at;
        for (size_t column = 0; column < columns; ++column) {
            at = put_value(at, batch->columns[column][row]);
        }
        list->at = at;
        ++list->rows;
    }
    return SQLITE_OK;
}

static int add_batch(sj_function_groups *groups)
{
    const sj_group_batch *batch = &groups->batch;
    const int mapped = map_batch(groups);
    if (mapped != SQLITE_OK) {
        return mapped;
    }
    if (groups->column_count == 0) {
        for (size_t row = 0; row < batch->row_count; ++row) {
            ++groups->lists[groups->entry_lists[batch->entries[row]]].rows;
        }
        return SQLITE_OK;
    }
    return groups->column_count == 1 ? hold_batch(groups, 1)
                                     : hold_batch(groups, groups->column_count);
}

/* --- reading rows ------------------------------------------------------------------------------
 */

static int compare_ids(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left;
    const int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

typedef struct list_entry {
    int64_t function_id;
    uint32_t list;
} list_entry;

/* Sorts the lists that have rows by function_id. */
static int sort_lists(sj_function_groups *groups)
{
    list_entry *entries = malloc((groups->list_count + 1) * sizeof(*entries));
    uint32_t *sorted = realloc(groups->sorted, (groups->list_count + 1) * sizeof(*sorted));
    groups->sorted = sorted != NULL ? sorted : groups->sorted;
    if (entries == NULL || sorted == NULL) {
        free(entries);
        return SQLITE_NOMEM;
    }
    size_t count = 0;
    for (size_t i = 0; i < groups->list_count; ++i) {
        if (groups->lists[i].rows != 0) {
            entries[count++] = (list_entry){groups->lists[i].function_id, (uint32_t)i};
        }
    }
    qsort(entries, count, sizeof(*entries), compare_ids);
    for (size_t i = 0; i < count; ++i) {
        sorted[i] = entries[i].list;
    }
    free(entries);
    groups->sorted_count = count;
    groups->at_list = 0;
    groups->left_rows = 0;
    return SQLITE_OK;
}

/* Reads all batches of the source into lists, then sorts the lists. */
static int read_all(sj_function_groups *groups)
{
    for (size_t i = 0; i < groups->list_count; ++i) {
        free_rows(groups, &groups->lists[i]);
    }
    sj_spill_clear(&groups->spill);
    groups->piece = groups->piece != NULL ? groups->piece : malloc(PIECE_BYTES);
    int result = groups->piece != NULL ? SQLITE_OK : SQLITE_NOMEM;
    while (result == SQLITE_OK &&
           (result = groups->give(groups->context, &groups->batch)) == SQLITE_ROW) {
        result = add_batch(groups);
    }
    return result == SQLITE_DONE ? sort_lists(groups) : result;
}

/* Reads the next piece of the current run. Moves the unread end of the previous piece to the front,
 * as a row may cross pieces. */
static int read_piece(sj_function_groups *groups)
{
    const size_t unread_bytes = (size_t)(groups->end_of_piece - groups->at);
    const int64_t left = groups->run->bytes - groups->run_at;
    const size_t space = PIECE_BYTES - unread_bytes;
    const size_t wanted = left < (int64_t)space ? (size_t)left : space;
    if (unread_bytes != 0) {
        memmove(groups->piece, groups->at, unread_bytes);
    }
    const int result = sj_spill_read(&groups->spill, groups->piece + unread_bytes, wanted,
                                     groups->run->offset + groups->run_at);
    groups->run_at += (int64_t)wanted;
    groups->at = groups->piece;
    groups->end_of_piece = groups->piece + unread_bytes + wanted;
    groups->refill = groups->run_at == groups->run->bytes
                         ? groups->end_of_piece
                         : groups->end_of_piece - groups->column_count * WIDE_VALUE_BYTES;
    return result;
}

/* Moves to the next bytes of the current list: the next piece of a run, the next run, or the next
 * chunk. */
static int next_piece(sj_function_groups *groups)
{
    if (groups->run != NULL && groups->run_at == groups->run->bytes) {
        groups->run = groups->run->next;
        groups->run_at = 0;
        groups->at = groups->end_of_piece = groups->piece;
    }
    if (groups->run != NULL) {
        return read_piece(groups);
    }
    groups->at = groups->chunk->bytes;
    groups->refill = groups->end_of_piece = groups->at + groups->chunk->used;
    groups->chunk = groups->chunk->next;
    return SQLITE_OK;
}

static void begin_list(sj_function_groups *groups)
{
    sj_group_list *list = &groups->lists[groups->sorted[groups->at_list++]];
    close_chunk(list);
    groups->left_rows = list->rows;
    groups->current_id = list->function_id;
    groups->chunk = list->first;
    groups->run = list->first_run;
    groups->run_at = 0;
    groups->at = groups->end_of_piece = groups->refill = groups->piece;
}

int sj_function_groups_next(sj_function_groups *groups)
{
    if (groups->left_rows == 0) {
        if (groups->at_list == groups->sorted_count) {
            groups->end = true;
            return SQLITE_OK;
        }
        begin_list(groups);
    }
    --groups->left_rows;
    if (groups->column_count == 0) {
        return SQLITE_OK;
    }
    if (groups->at >= groups->refill) {
        const int result = next_piece(groups);
        if (result != SQLITE_OK) {
            return result;
        }
    }
    for (size_t column = 0; column < groups->column_count; ++column) {
        groups->at = get_value(groups->at, &groups->current[column]);
    }
    return SQLITE_OK;
}

int sj_function_groups_start(sj_function_groups *groups)
{
    for (size_t i = 0; i < groups->column_count; ++i) {
        groups->positions[groups->columns[i]] = (int8_t)i;
    }
    groups->end = false;
    const int result = read_all(groups);
    return result == SQLITE_OK ? sj_function_groups_next(groups) : result;
}

void sj_function_groups_deinit(sj_function_groups *groups)
{
    for (size_t i = 0; i < groups->list_count; ++i) {
        free_rows(groups, &groups->lists[i]);
    }
    sj_spill_close(&groups->spill);
    free(groups->lists);
    free(groups->table);
    free(groups->entry_lists);
    free(groups->sorted);
    free(groups->piece);
    *groups = (sj_function_groups){0};
}
