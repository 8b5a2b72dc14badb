/* Design notes
 *
 * The log makes the same assumptions about disks as SQLite does. A sync waits for all earlier
 * writes. A sector that is not written keeps its content (SQLITE_IOCAP_POWERSAFE_OVERWRITE). A
 * deleted file is gone at once, because SQLite syncs the folder where it matters. */
#include "tests/support/power_log.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SECTOR = 512 };

static const char *const suffixes[POWER_FILES] = {"", "-wal", "-journal"};

typedef enum entry_kind { WRITTEN, TRUNCATED, SYNCED, DELETED } entry_kind;

typedef struct entry {
    entry_kind kind;
    power_file file;
    uint64_t at; /* TRUNCATED: the new size */
    size_t size;
    uint8_t *bytes;
} entry;

/* The content of a file on the disk. */
typedef struct disk_file {
    uint8_t *bytes;
    uint64_t size, capacity;
    bool exists;
} disk_file;

/* `adding` protects the list while threads write files. */
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
static entry *entries;
static size_t count, capacity;
static bool is_on;

static void add_locked(entry made)
{
    if (count == capacity) {
        capacity = capacity == 0 ? 1024 : capacity * 2;
        entries = realloc(entries, capacity * sizeof(*entries));
        if (entries == NULL) {
            abort();
        }
    }
    entries[count++] = made;
}

static void add(entry made)
{
    pthread_mutex_lock(&adding);
    if (is_on && made.file < POWER_FILES) {
        add_locked(made);
    } else {
        free(made.bytes);
    }
    pthread_mutex_unlock(&adding);
}

void power_log_write(power_file file, uint64_t at, const void *bytes, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    if (copy == NULL) {
        return;
    }
    memcpy(copy, bytes, size);
    add((entry){.kind = WRITTEN, .file = file, .at = at, .size = size, .bytes = copy});
}

void power_log_truncate(power_file file, uint64_t size)
{
    add((entry){.kind = TRUNCATED, .file = file, .at = size});
}

void power_log_sync(power_file file)
{
    add((entry){.kind = SYNCED, .file = file});
}

static bool ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name);
    return length >= strlen(end) && strcmp(name + length - strlen(end), end) == 0;
}

void power_log_delete(const char *name)
{
    const power_file file = ends_with(name, suffixes[POWER_WAL])       ? POWER_WAL
                            : ends_with(name, suffixes[POWER_JOURNAL]) ? POWER_JOURNAL
                                                                       : POWER_NONE;
    add((entry){.kind = DELETED, .file = file});
}

void power_log_end(void)
{
    pthread_mutex_lock(&adding);
    is_on = false;
    pthread_mutex_unlock(&adding);
}

void power_log_begin(void)
{
    for (size_t i = 0; i < count; ++i) {
        free(entries[i].bytes);
    }
    free(entries);
    entries = NULL;
    count = capacity = 0;
    is_on = true;
}

uint64_t power_log_count(void)
{
    pthread_mutex_lock(&adding);
    const uint64_t found = count;
    pthread_mutex_unlock(&adding);
    return found;
}

static void resize(disk_file *file, uint64_t size)
{
    if (file->bytes == NULL || size > file->capacity) {
        file->capacity = size * 2 + SECTOR;
        file->bytes = realloc(file->bytes, file->capacity);
    }
    if (file->bytes == NULL) {
        abort();
    }
    if (size > file->size) {
        memset(file->bytes + file->size, 0, size - file->size);
    }
    file->size = size;
    file->exists = true;
}

/* Copies `size` bytes of a written entry into the file, from the entry's byte `from` on. */
static void put(disk_file *file, const entry *written, size_t from, size_t size)
{
    const uint64_t end = written->at + from + size;
    if (end > file->size) {
        resize(file, end);
    }
    memcpy(file->bytes + written->at + from, written->bytes + from, size);
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static void put_some_sectors(disk_file *file, const entry *written, uint64_t *random)
{
    size_t from = 0;
    while (from < written->size) {
        const size_t rest = SECTOR - (written->at + from) % SECTOR;
        const size_t size = rest < written->size - from ? rest : written->size - from;
        if (next_random(random) % 2 == 0) {
            put(file, written, from, size);
        }
        from += size;
    }
}

static void settle(disk_file *file, const entry *change)
{
    if (change->kind == WRITTEN) {
        put(file, change, 0, change->size);
    } else if (change->kind == TRUNCATED) {
        resize(file, change->at);
    }
}

/* Decides which of the writes without a later sync are on the disk, and in which sequence they
 * reached it. */
static void lose(disk_file *file, const entry **pending, size_t pending_count, power_loss loss,
                 uint64_t *random)
{
    for (size_t i = 0; i < pending_count && loss != LOSS_DROPS; ++i) {
        if (loss == LOSS_KEEPS) {
            settle(file, pending[i]);
            continue;
        }
        const size_t other = i + next_random(random) % (pending_count - i);
        const entry *chosen = pending[other];
        pending[other] = pending[i];
        if (chosen->kind == WRITTEN) {
            put_some_sectors(file, chosen, random);
        } else if (next_random(random) % 2 == 0) {
            settle(file, chosen);
        }
    }
}

static void write_out(const char *path, const char *suffix, const disk_file *file)
{
    char name[128];
    snprintf(name, sizeof(name), "%s%s", path, suffix);
    unlink(name);
    if (!file->exists) {
        return;
    }
    FILE *made = fopen(name, "wb");
    if (made == NULL || fwrite(file->bytes, 1, file->size, made) != file->size ||
        fclose(made) != 0) {
        abort();
    }
}

/* Returns the number of the log's entry at which the syncs without effect begin. */
static uint64_t first_lie(uint64_t end, unsigned lies)
{
    while (end > 0 && lies > 0) {
        lies -= entries[--end].kind == SYNCED;
    }
    return end;
}

static disk_file replay(power_file file, uint64_t end, uint64_t honest_end, power_loss loss,
                        uint64_t *random)
{
    disk_file made = {0};
    const entry **pending = calloc(end + 1, sizeof(*pending));
    size_t pending_count = 0;
    for (uint64_t i = 0; i < end; ++i) {
        const entry *change = &entries[i];
        if (change->file != file) {
            continue;
        }
        if (change->kind == DELETED) {
            free(made.bytes);
            made = (disk_file){0};
            pending_count = 0;
        } else if (change->kind != SYNCED) {
            pending[pending_count++] = change;
        } else if (i < honest_end) {
            for (size_t k = 0; k < pending_count; ++k) {
                settle(&made, pending[k]);
            }
            pending_count = 0;
        }
    }
    lose(&made, pending, pending_count, loss, random);
    free(pending);
    return made;
}

void power_log_lose(const char *path, uint64_t end, power_loss loss, unsigned lies, uint64_t seed)
{
    const uint64_t honest_end = lies == 0 ? end : first_lie(end, lies);
    char memory[128];
    snprintf(memory, sizeof(memory), "%s-shm", path);
    unlink(memory);
    for (int i = 0; i < POWER_FILES; ++i) {
        disk_file made = replay((power_file)i, end, honest_end, loss, &seed);
        write_out(path, suffixes[i], &made);
        free(made.bytes);
    }
}
