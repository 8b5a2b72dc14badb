/* Design notes.
 *
 * A block can be read alone, so a dump may contain any set of blocks. DEEP_FRAMES blocks, which
 * other blocks refer to, are deleted only if memory is short. A dump leaves the blocks in place,
 * because the next dump may overlap it. The child session starts with the metadata frames of its
 * parent (modules, threads, ...) under its own id, which the frame writer kept.
 *
 * Each block is a file in the runtime directory (a tmpfs, so in memory). So the blocks of a killed
 * recorder still exist. */
#include "agent/modes/flight_recorder.h"

#include "proto/base/array.h"
#include "proto/base/crc32c.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const char file_prefix[] = "flight-";

typedef struct kept_block {
    struct kept_block *newer;
    sj_block_header header;
    size_t size;
    uint8_t *bytes;  /* mapped if it has a file, else allocated */
    uint64_t number; /* number of its file; 0: none */
} kept_block;

struct sj_flight_recorder {
    sj_flight_recorder_options options;
    kept_block *oldest;
    kept_block **end;
    uint64_t bytes;
    uint64_t last_number; /* The newest file has this number. */
    bool pending;
    uint64_t dump_ticks;
    char cause[160];
    sj_session_id child;
};

sj_status sj_flight_recorder_new(const sj_flight_recorder_options *options,
                                 sj_flight_recorder **flight)
{
    sj_flight_recorder *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    made->options = *options;
    made->end = &made->oldest;
    *flight = made;
    return SJ_OK;
}

static const char *name_file(const char *directory, uint64_t number, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%.4000s/%s%llu", directory, file_prefix, (unsigned long long)number);
    return path;
}

static void delete_block(sj_flight_recorder *flight, kept_block **at)
{
    kept_block *gone = *at;
    *at = gone->newer;
    if (*at == NULL) {
        flight->end = at;
    }
    flight->bytes -= gone->size;
    if (gone->number != 0) {
        char path[PATH_MAX];
        munmap(gone->bytes, gone->size);
        unlink(name_file(flight->options.directory, gone->number, path));
    } else {
        free(gone->bytes);
    }
    free(gone);
}

void sj_flight_recorder_leave(sj_flight_recorder *flight)
{
    while (flight != NULL && flight->oldest != NULL) {
        kept_block *gone = flight->oldest;
        flight->oldest = gone->newer;
        if (gone->number != 0) {
            munmap(gone->bytes, gone->size);
        } else {
            free(gone->bytes);
        }
        free(gone);
    }
    free(flight);
}

void sj_flight_recorder_free(sj_flight_recorder *flight)
{
    if (flight != NULL) {
        while (flight->oldest != NULL) {
            delete_block(flight, &flight->oldest);
        }
        free(flight);
    }
}

static uint64_t earliest_kept_ticks(const sj_flight_recorder *flight, uint64_t ticks)
{
    return ticks > flight->options.before_ticks ? ticks - flight->options.before_ticks : 0;
}

/* Deletes the blocks that are too old for any dump, then the oldest ones until `wanted` bytes
 * fit. */
static void evict_blocks(sj_flight_recorder *flight, uint64_t now_ticks, size_t wanted)
{
    const uint64_t base = flight->pending ? flight->dump_ticks : now_ticks;
    kept_block **at = &flight->oldest;
    while (*at != NULL) {
        if ((*at)->header.kind == SJ_BLOCK_CALLS &&
            (*at)->header.last_ticks < earliest_kept_ticks(flight, base)) {
            delete_block(flight, at);
        } else {
            at = &(*at)->newer;
        }
    }
    while (flight->oldest != NULL && flight->bytes + wanted > flight->options.max_bytes) {
        delete_block(flight, &flight->oldest);
    }
}

/* Maps the block's file. Creates it with `size` bytes if `flags` say so. Returns NULL if that
 * fails. */
static uint8_t *map_file(const char *path, int flags, size_t size)
{
    const int fd = open(path, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    void *bytes = MAP_FAILED;
    /* Reserved, not sparse, so that a full tmpfs is an error here instead of a SIGBUS later. */
    if (fd >= 0 && ((flags & O_CREAT) == 0 || posix_fallocate(fd, 0, (off_t)size) == 0)) {
        bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (fd >= 0) {
        close(fd);
    }
    if (bytes == MAP_FAILED && fd >= 0 && (flags & O_CREAT) != 0) {
        unlink(path);
    }
    return bytes != MAP_FAILED ? bytes : NULL;
}

/* Allocates the bytes of a block: in a file, else in memory. */
static bool allocate_block(sj_flight_recorder *flight, kept_block *kept)
{
    char path[PATH_MAX];
    if (flight->options.directory != NULL) {
        kept->number = ++flight->last_number;
        kept->bytes = map_file(name_file(flight->options.directory, kept->number, path),
                               O_CREAT | O_EXCL, kept->size);
    }
    if (kept->bytes == NULL) {
        kept->number = 0;
        kept->bytes = malloc(kept->size);
    }
    return kept->bytes != NULL;
}

static void append_block(sj_flight_recorder *flight, kept_block *kept)
{
    *flight->end = kept;
    flight->end = &kept->newer;
    flight->bytes += kept->size;
}

sj_status sj_flight_recorder_block(sj_flight_recorder *flight, const sj_block_header *header,
                                   sj_slice bytes)
{
    evict_blocks(flight, header->last_ticks, bytes.size);
    kept_block *kept = calloc(1, sizeof(*kept));
    if (kept == NULL) {
        return SJ_ENOMEM;
    }
    kept->header = *header;
    kept->size = bytes.size;
    if (!allocate_block(flight, kept)) {
        free(kept);
        return SJ_ENOMEM;
    }
    memcpy(kept->bytes, bytes.data, bytes.size);
    append_block(flight, kept);
    return SJ_OK;
}

uint64_t sj_flight_recorder_last_number(const sj_flight_recorder *flight)
{
    return flight->last_number;
}

static int compare_numbers(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* Lists the numbers of the blocks, oldest first. The caller frees `*numbers`. */
static sj_status list_files(const char *directory, uint64_t **numbers, size_t *count)
{
    DIR *folder = opendir(directory);
    size_t capacity = 0;
    sj_status status = SJ_OK;
    while (folder != NULL && status == SJ_OK) {
        const struct dirent *entry = readdir(folder);
        if (entry == NULL) {
            break;
        }
        if (strncmp(entry->d_name, file_prefix, sizeof(file_prefix) - 1) != 0) {
            continue;
        }
        status = sj_array_reserve(numbers, &capacity, *count, 1, sizeof(**numbers));
        if (status == SJ_OK) {
            (*numbers)[(*count)++] = strtoull(entry->d_name + sizeof(file_prefix) - 1, NULL, 10);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    if (*count != 0) {
        qsort(*numbers, *count, sizeof(**numbers), compare_numbers);
    }
    return status;
}

/* True if the checksum in the last four bytes is right. */
static bool is_checksum_right(sj_slice bytes)
{
    uint32_t checksum;
    const size_t checked = bytes.size - sizeof(checksum);
    memcpy(&checksum, bytes.data + checked, sizeof(checksum));
    return sj_crc32c(0, bytes.data, checked) == checksum;
}

/* Reads the header of the block. Returns false if the block is not complete. */
static bool is_complete(kept_block *kept)
{
    const sj_slice bytes = {.data = kept->bytes, .size = kept->size};
    return sj_block_read_header(bytes, &kept->header) == SJ_OK && is_checksum_right(bytes);
}

/* Loads one block. Deletes a block that the recorder was writing when it was killed: its records
 * are read again, and the block that they are in then has the same number. */
static sj_status load_file(sj_flight_recorder *flight, uint64_t number)
{
    char path[PATH_MAX];
    struct stat about;
    kept_block *kept = calloc(1, sizeof(*kept));
    if (kept == NULL) {
        return SJ_ENOMEM;
    }
    name_file(flight->options.directory, number, path);
    const bool is_own = stat(path, &about) == 0 && about.st_uid == geteuid();
    if (is_own && about.st_size > 0) {
        kept->number = number;
        kept->size = (size_t)about.st_size;
        kept->bytes = map_file(path, 0, kept->size);
    }
    if (kept->bytes != NULL && is_complete(kept)) {
        append_block(flight, kept);
        flight->last_number = number;
        return SJ_OK;
    }
    if (is_own && (about.st_size == 0 || kept->bytes != NULL)) {
        unlink(path);
    }
    if (kept->bytes != NULL) {
        munmap(kept->bytes, kept->size);
    }
    free(kept);
    return SJ_OK;
}

sj_status sj_flight_recorder_load(sj_flight_recorder *flight, const char *directory)
{
    uint64_t *numbers = NULL;
    size_t count = 0;
    sj_status status = list_files(directory, &numbers, &count);
    for (size_t i = 0; i < count && status == SJ_OK; i++) {
        status = load_file(flight, numbers[i]);
    }
    free(numbers);
    return status;
}

sj_status sj_flight_recorder_dump(sj_flight_recorder *flight, uint64_t ticks, const char *cause,
                                  sj_session_id *child)
{
    if (flight->pending) {
        return SJ_EAGAIN;
    }
    if (getrandom(flight->child.bytes, SJ_SESSION_ID_BYTES, 0) != SJ_SESSION_ID_BYTES) {
        return SJ_EIO;
    }
    flight->pending = true;
    flight->dump_ticks = ticks;
    snprintf(flight->cause, sizeof(flight->cause), "%s", cause);
    *child = flight->child;
    return SJ_OK;
}

bool sj_flight_recorder_is_due(const sj_flight_recorder *flight, uint64_t now_ticks, bool at_end)
{
    return flight->pending &&
           (at_end || (now_ticks >= flight->dump_ticks &&
                       now_ticks - flight->dump_ticks >= flight->options.after_ticks));
}

static sj_status send_blocks(sj_flight_recorder *flight, uint64_t now_ticks)
{
    const uint64_t from = earliest_kept_ticks(flight, flight->dump_ticks);
    sj_child_sums sums = {.ended_ticks = now_ticks};
    for (kept_block *each = flight->oldest; each != NULL; each = each->newer) {
        if (each->header.kind == SJ_BLOCK_CALLS && each->header.last_ticks < from) {
            continue;
        }
        const sj_slice bytes = {.data = each->bytes, .size = each->size};
        SJ_TRY(sj_block_set_session(each->bytes, each->size, &flight->child));
        SJ_TRY(sj_frame_writer_child_block(flight->options.writer, &flight->child, &each->header,
                                           bytes, &sums));
    }
    return sj_frame_writer_child_end(flight->options.writer, &flight->child, &sums);
}

sj_status sj_flight_recorder_ship(sj_flight_recorder *flight, uint64_t now_ticks)
{
    flight->pending = false;
    SJ_TRY(sj_frame_writer_child_begin(flight->options.writer, &flight->child, flight->cause));
    return send_blocks(flight, now_ticks);
}
