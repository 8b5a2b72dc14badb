#include "collector-server/fleet/session_grants.h"

#include "collector-server/store/sql.h"
#include "proto/base/array.h"
#include "schema/queries/fleet/session_grants.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct held_pass {
    int64_t device_id;
    int64_t pass;
    uint8_t uuid[SJ_DEVICE_ID_BYTES];
    uint8_t token_hash[SJ_SECRET_HASH_BYTES];
} held_pass;

struct sj_session_grants {
    pthread_mutex_t lock;
    held_pass *held;           /* owned; sorted by device_id */
    const held_pass **by_uuid; /* owned; pointers into `held`, sorted by uuid */
    int64_t *valid;            /* owned; the passes of `held` in ascending order */
    size_t count;
    int64_t last_event; /* latest event of `token_events` that was read; 0: none */
};

sj_session_grants *sj_session_grants_new(void)
{
    sj_session_grants *made = calloc(1, sizeof(*made));
    if (made != NULL) {
        pthread_mutex_init(&made->lock, NULL);
    }
    return made;
}

void sj_session_grants_free(sj_session_grants *passes)
{
    if (passes != NULL) {
        pthread_mutex_destroy(&passes->lock);
        free(passes->held);
        free(passes->by_uuid);
        free(passes->valid);
        free(passes);
    }
}

static int64_t read_number(sqlite3 *database, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int64_t number = 0;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        number = sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    return number;
}

typedef struct held_list {
    held_pass *passes;
    size_t count, capacity;
} held_list;

static sj_status add_held(void *context, sqlite3_stmt *row)
{
    held_list *list = context;
    SJ_TRY(sj_array_reserve(&list->passes, &list->capacity, list->count, 1, sizeof(*list->passes)));
    held_pass *one = &list->passes[list->count++];
    one->device_id = sqlite3_column_int64(row, 0);
    one->pass = sqlite3_column_int64(row, 1);
    memcpy(one->uuid, sqlite3_column_blob(row, 2), sizeof(one->uuid));
    memcpy(one->token_hash, sqlite3_column_blob(row, 3), sizeof(one->token_hash));
    return SJ_OK;
}

/* Reads the devices with valid tokens. Returns NULL on an error or if out of memory. The next
 * sj_session_grants_renew then reads again. */
static held_pass *read_held(sqlite3 *database, size_t *count)
{
    held_list list = {0};
    sj_status status = sj_array_reserve(&list.passes, &list.capacity, 0, 1, sizeof(*list.passes));
    if (status == SJ_OK) {
        status = sj_sql_each(database, sj_session_grants_held_sql, (sj_sql_binds){0}, add_held,
                             &list, NULL);
    }
    *count = list.count;
    if (status == SJ_OK) {
        return list.passes;
    }
    free(list.passes);
    return NULL;
}

static int compare_numbers(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left;
    const int64_t b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

static int64_t *sort_passes(const held_pass *held, size_t count)
{
    int64_t *valid = malloc((count + 1) * sizeof(*valid));
    for (size_t i = 0; valid != NULL && i < count; i++) {
        valid[i] = held[i].pass;
    }
    if (valid != NULL) {
        qsort(valid, count, sizeof(*valid), compare_numbers);
    }
    return valid;
}

static int compare_uuids(const void *left, const void *right)
{
    const held_pass *const *a = left;
    const held_pass *const *b = right;
    return memcmp((*a)->uuid, (*b)->uuid, sizeof((*a)->uuid));
}

static const held_pass **sort_by_uuid(const held_pass *held, size_t count)
{
    const held_pass **sorted = malloc((count + 1) * sizeof(*sorted));
    for (size_t i = 0; sorted != NULL && i < count; i++) {
        sorted[i] = &held[i];
    }
    if (sorted != NULL) {
        qsort(sorted, count, sizeof(*sorted), compare_uuids);
    }
    return sorted;
}

bool sj_session_grants_renew(sj_session_grants *passes, sqlite3 *database)
{
    const int64_t last = read_number(database, "SELECT max(event_id) FROM token_events");
    size_t count = 0;
    if (last == passes->last_event) {
        return false;
    }
    held_pass *held = read_held(database, &count);
    int64_t *valid = held != NULL ? sort_passes(held, count) : NULL;
    const held_pass **by_uuid = held != NULL ? sort_by_uuid(held, count) : NULL;
    if (valid == NULL || by_uuid == NULL) {
        free(held);
        free(valid);
        free(by_uuid);
        return false;
    }
    pthread_mutex_lock(&passes->lock);
    free(passes->held);
    free(passes->by_uuid);
    free(passes->valid);
    passes->held = held;
    passes->by_uuid = by_uuid;
    passes->valid = valid;
    passes->count = count;
    passes->last_event = last;
    pthread_mutex_unlock(&passes->lock);
    return true;
}

static int compare_devices(const void *left, const void *right)
{
    const held_pass *a = left;
    const held_pass *b = right;
    return a->device_id < b->device_id ? -1 : a->device_id > b->device_id;
}

int64_t sj_session_grants_of_device(sj_session_grants *passes, int64_t device_id)
{
    const held_pass wanted = {.device_id = device_id};
    pthread_mutex_lock(&passes->lock);
    const held_pass *found = passes->count != 0 ? bsearch(&wanted, passes->held, passes->count,
                                                          sizeof(wanted), compare_devices)
                                                : NULL;
    const int64_t pass = found != NULL ? found->pass : 0;
    pthread_mutex_unlock(&passes->lock);
    return pass;
}

bool sj_session_grants_has_device(sj_session_grants *passes, int64_t device_id)
{
    return sj_session_grants_of_device(passes, device_id) != 0;
}

int64_t sj_session_grants_judge(sj_session_grants *passes, const uint8_t uuid[SJ_DEVICE_ID_BYTES],
                                const uint8_t token_hash[SJ_SECRET_HASH_BYTES])
{
    static const uint8_t nobody[SJ_SECRET_HASH_BYTES];
    held_pass wanted;
    const held_pass *key = &wanted;
    memcpy(wanted.uuid, uuid, sizeof(wanted.uuid));
    pthread_mutex_lock(&passes->lock);
    const held_pass *const *found =
        passes->count != 0
            ? bsearch(&key, passes->by_uuid, passes->count, sizeof(key), compare_uuids)
            : NULL;
    const bool is_equal =
        sj_secret_equal(token_hash, found != NULL ? (*found)->token_hash : nobody);
    const int64_t pass = found != NULL && is_equal ? (*found)->pass : 0;
    pthread_mutex_unlock(&passes->lock);
    return pass;
}

bool sj_session_grants_has(sj_session_grants *passes, int64_t pass)
{
    pthread_mutex_lock(&passes->lock);
    const bool has = passes->count != 0 && bsearch(&pass, passes->valid, passes->count,
                                                   sizeof(pass), compare_numbers) != NULL;
    pthread_mutex_unlock(&passes->lock);
    return has;
}
