/* Design notes
 *
 * A position is `segment number << 32 | offset`. Positions only grow, so the ledger needs one
 * number, the watermark: all frames before it are acknowledged. Acknowledgements out of order wait
 * in `given` until the earlier ones have arrived. After a crash those frames are sent again, and
 * the collector recognises them.
 *
 * Order of a deletion: write the watermark, sync the ledger, unlink. In another order, a crash
 * would leave a ledger that points into a deleted file. If the file of the watermark has become
 * shorter than the watermark (power loss), a new segment begins. New frames in the short file would
 * count as acknowledged.
 *
 * `lock` protects everything except the buffers, which belong to the reader thread. Files are read
 * without it: only the reader thread closes them. */
#include "agent/uplink/spool.h"

#include "agent/uplink/spool_secret.h"

#include "agent/uplink/spool_ack_log.h"
#include "agent/uplink/spool_announced.h"
#include "agent/uplink/spool_aside.h"
#include "agent/uplink/spool_collector.h"
#include "agent/uplink/spool_directory.h"
#include "agent/uplink/spool_quota.h"
#include "agent/uplink/spool_segment.h"
#include "proto/base/array.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    FLOWING_BYTES = 4 << 20, /* Most unacknowledged bytes on a disk without its reserve. */
    ANNOUNCED_SHARE = 8,     /* Announcements may use 1/8 of quota, budget and disk. */
    RESERVED_SHARE = 8,      /* Share of a small disk that is left free as its reserve. */
    DEFAULT_RESERVE_BYTES = 64 << 20,
    BUFFERS = 64,
    BUFFER_KEEP_BYTES = 1 << 20, /* A larger buffer is freed when it is reused. */
    DEFAULT_SEGMENT_BYTES = 4 << 20,
    PATH_BYTES = 4096
};

/* A frame (or damaged range) that the reader was given and that is not below the watermark yet. */
typedef struct given_frame {
    uint64_t position;
    uint32_t length;
    bool acknowledged;
} given_frame;

typedef struct frame_buffer {
    uint8_t *bytes;
    size_t capacity;
} frame_buffer;

struct sj_spool {
    pthread_mutex_t lock;
    char *directory;
    uint64_t budget_bytes;
    uint64_t reserve_bytes; /* 0: depends on the disk. */
    uint32_t segment_bytes;
    sj_spool_quota quota;
    sj_spool_ack_log ledger;
    sj_spool_segment *segments; /* Oldest first; appends go to the last. */
    size_t segment_count;
    size_t segment_capacity;
    uint32_t next_number; /* Number of the next segment. */
    given_frame *given;   /* In order of position, from the watermark on. */
    size_t given_count;
    size_t given_capacity;
    size_t cursor;    /* Next of `given` to give again. given_count: read on. */
    uint64_t read_at; /* Position of the next frame never given. */
    sj_spool_aside aside;
    sj_spool_announced announced;
    sj_spool_segment recalled; /* The file of `announced` while a walk reads it. Number 0. */
    sj_spool_counters counters;
    frame_buffer buffers[BUFFERS];
    unsigned next_buffer;
};

static uint64_t position_of(uint32_t number, uint64_t offset)
{
    return (uint64_t)number << 32 | offset;
}

static uint32_t number_of(uint64_t position)
{
    return (uint32_t)(position >> 32);
}

static uint64_t offset_of(uint64_t position)
{
    return position & UINT32_MAX;
}

static void unlink_segment(const sj_spool *spool, uint32_t number)
{
    char name[SJ_SPOOL_SEGMENT_NAME_BYTES];
    char path[PATH_BYTES];
    sj_spool_segment_name(number, name);
    snprintf(path, sizeof(path), "%s/%s", spool->directory, name);
    unlink(path);
}

static int compare_numbers(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left;
    const uint32_t b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

static sj_status list_segments(const char *directory, uint32_t **numbers, size_t *count,
                               sj_error *error)
{
    DIR *folder = opendir(directory);
    if (folder == NULL) {
        return sj_fail(error, SJ_EIO, "cannot read %s: %s", directory, strerror(errno));
    }
    size_t capacity = 0;
    sj_status status = SJ_OK;
    struct dirent *entry;
    while (status == SJ_OK && (entry = readdir(folder)) != NULL) {
        const uint32_t number = sj_spool_segment_number(entry->d_name);
        if (number != 0) {
            status = sj_array_reserve(numbers, &capacity, *count, 1, sizeof(**numbers));
            if (status == SJ_OK) {
                (*numbers)[(*count)++] = number;
            }
        }
    }
    closedir(folder);
    if (*count > 1) {
        qsort(*numbers, *count, sizeof(**numbers), compare_numbers);
    }
    return status;
}

static sj_status add_segment(sj_spool *spool, uint32_t number, bool create, sj_error *error)
{
    SJ_TRY(sj_array_reserve(&spool->segments, &spool->segment_capacity, spool->segment_count, 1,
                            sizeof(*spool->segments)));
    sj_spool_segment segment;
    SJ_TRY(sj_spool_segment_open(spool->directory, number, create, &segment, error));
    spool->segments[spool->segment_count++] = segment;
    if (number >= spool->next_number) {
        spool->next_number = number + 1;
    }
    return SJ_OK;
}

/* Cuts the bytes that a crash left after the last whole frame of the newest segment, and sets them
 * aside. */
static sj_status cut_tail(sj_spool *spool, sj_spool_segment *segment, uint64_t from,
                          sj_error *error)
{
    if (from >= segment->size) {
        return SJ_OK;
    }
    const size_t size = (size_t)(segment->size - from);
    uint8_t *bytes = malloc(size);
    if (bytes == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory to check the spool");
    }
    sj_status status = sj_spool_segment_read(segment, from, bytes, size);
    size_t whole = 0; /* End of the last sound frame. */
    for (size_t at = 0; status == SJ_OK && at < size;) {
        sj_frame_view view;
        at += sj_spool_find_frame((sj_slice){.data = bytes + at, .size = size - at});
        if (at < size &&
            sj_frame_read((sj_slice){.data = bytes + at, .size = size - at}, &view) == SJ_OK) {
            at += view.frame_bytes;
            whole = at;
        }
    }
    if (status == SJ_OK && whole < size) {
        sj_spool_aside_keep_torn(spool->directory, &spool->aside,
                                 position_of(segment->number, from + whole),
                                 (sj_slice){.data = bytes + whole, .size = size - whole});
        segment->size = from + whole;
        if (ftruncate(segment->file, (off_t)segment->size) != 0) {
            segment->sealed = true;
        }
    }
    free(bytes);
    return status == SJ_OK ? SJ_OK : sj_fail(error, status, "cannot read the spool's last segment");
}

static uint64_t reserve_on(const sj_spool *spool, const struct statvfs *disk)
{
    const uint64_t share = (uint64_t)disk->f_blocks * disk->f_frsize / RESERVED_SHARE;
    const uint64_t suited = share < DEFAULT_RESERVE_BYTES ? share : DEFAULT_RESERVE_BYTES;
    return spool->reserve_bytes != 0 ? spool->reserve_bytes : suited;
}

static uint64_t least(uint64_t left, uint64_t right)
{
    return left < right ? left : right;
}

/* Returns the largest size of the file of announcements. The file stays until the session is over,
 * so it may use only a share of the space for calls. */
static uint64_t most_announced(const sj_spool *spool)
{
    struct statvfs disk;
    uint64_t most = spool->budget_bytes / ANNOUNCED_SHARE;
    if (spool->quota.budget_bytes != 0) {
        most = least(most, spool->quota.budget_bytes / ANNOUNCED_SHARE);
    }
    if (statvfs(spool->directory, &disk) == 0) {
        const uint64_t size = (uint64_t)disk.f_blocks * disk.f_frsize;
        const uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
        const uint64_t reserve = reserve_on(spool, &disk);
        const uint64_t free_bytes = left > reserve ? left - reserve : 0;
        most = least(most, least(size / ANNOUNCED_SHARE, spool->announced.bytes + free_bytes));
    }
    return most;
}

static void retire_segment(sj_spool *spool, sj_spool_segment *segment)
{
    sj_spool_announced_keep(spool->directory, &spool->announced, segment, most_announced(spool));
    sj_spool_segment_close(segment);
    unlink_segment(spool, segment->number);
}

/* Opens the segments that contain unacknowledged frames, and removes the others. */
static sj_status load_segments(sj_spool *spool, sj_error *error)
{
    uint32_t *numbers = NULL;
    size_t count = 0;
    const uint32_t acknowledged = number_of(spool->ledger.watermark);
    sj_status status = list_segments(spool->directory, &numbers, &count, error);
    spool->next_number = acknowledged + 1;
    for (size_t i = 0; status == SJ_OK && i < count; ++i) {
        sj_spool_segment over;
        if (numbers[i] >= acknowledged) {
            status = add_segment(spool, numbers[i], false, error);
        } else if (sj_spool_segment_open(spool->directory, numbers[i], false, &over, NULL) ==
                   SJ_OK) {
            retire_segment(spool, &over);
        } else {
            spool->announced.unkept_frames++; /* At least one: its announcements are unreadable. */
            unlink_segment(spool, numbers[i]);
        }
    }
    free(numbers);
    for (size_t i = 0; status == SJ_OK && i < spool->segment_count; ++i) {
        sj_spool_segment *segment = &spool->segments[i];
        const uint64_t from =
            segment->number == acknowledged ? offset_of(spool->ledger.watermark) : 0;
        if (segment->size < from) {
            segment->sealed = true;
        }
        if (i + 1 == spool->segment_count) {
            status = cut_tail(spool, segment, from, error);
        }
        if (segment->size > from) {
            spool->counters.pending_bytes += segment->size - from;
            spool->counters.pending_frames += sj_spool_segment_count_frames(segment, from);
        }
    }
    spool->read_at = spool->ledger.watermark;
    return status;
}

static sj_status open_directory(const sj_spool_options *options, sj_spool **spool, sj_error *error)
{
    sj_spool *made = calloc(1, sizeof(*made));
    if (made == NULL || (made->directory = strdup(options->directory)) == NULL) {
        free(made);
        return sj_fail(error, SJ_ENOMEM, "no memory for a spool");
    }
    pthread_mutex_init(&made->lock, NULL);
    made->budget_bytes = options->budget_bytes != 0 ? options->budget_bytes : UINT64_C(4) << 30;
    made->reserve_bytes = options->reserve_bytes;
    made->quota.budget_bytes = options->root_budget_bytes;
    made->segment_bytes =
        options->segment_bytes != 0 ? options->segment_bytes : DEFAULT_SEGMENT_BYTES;
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/acked", made->directory);
    (void)sj_spool_aside_read(made->directory, &made->aside);
    made->ledger.file = -1;
    made->recalled.file = -1;
    sj_status status = sj_spool_ack_log_open(path, &made->ledger, error);
    if (status == SJ_OK) {
        sj_spool_announced_open(made->directory, &made->announced);
        status = load_segments(made, error);
    }
    if (status != SJ_OK) {
        sj_spool_close(made);
        return status == SJ_ENOMEM
                   ? sj_fail(error, status, "no memory to open the spool %s", options->directory)
                   : status;
    }
    *spool = made;
    return SJ_OK;
}

sj_status sj_spool_open(const sj_spool_options *options, sj_spool **spool, sj_error *error)
{
    bool is_new = false;
    SJ_TRY(sj_spool_directory_make(options->directory, PATH_BYTES, &is_new, error));
    const sj_status status = open_directory(options, spool, error);
    if (status != SJ_OK && is_new) {
        sj_spool_directory_remove_unused(options->directory);
    }
    return status;
}

static uint64_t bytes_on_disk(const sj_spool *spool)
{
    uint64_t sum = spool->aside.bytes + spool->announced.bytes;
    for (size_t i = 0; i < spool->segment_count; ++i) {
        sum += spool->segments[i].size;
    }
    return sum;
}

/* True for blocks, profiles and reports, not for frames that describe them. The budgets apply only
 * to the former, because the end of a session must fit even if its calls did not. */
static bool is_bulk(sj_slice frame)
{
    sj_reader reader = sj_reader_of(frame.data, frame.size);
    (void)sj_read_u32(&reader); /* Magic. */
    (void)sj_read_u8(&reader);
    (void)sj_read_u8(&reader);
    const uint16_t type = sj_read_u16(&reader);
    return type == SJ_FRAME_BLOCK || type == SJ_FRAME_PROFILE || type == SJ_FRAME_REPORT;
}

static sj_status check_space(sj_spool *spool, size_t size, sj_error *error)
{
    struct statvfs disk;
    if (sj_spool_quota_left(&spool->quota, spool->directory, bytes_on_disk(spool),
                            spool->segment_bytes) < size) {
        return sj_fail(error, SJ_EFULL, "the spools beside %s have reached their %llu bytes",
                       spool->directory, (unsigned long long)spool->quota.budget_bytes);
    }
    if (spool->counters.pending_bytes + size > spool->budget_bytes) {
        return sj_fail(error, SJ_EFULL, "the spool %s has reached its %llu bytes", spool->directory,
                       (unsigned long long)spool->budget_bytes);
    }
    if (statvfs(spool->directory, &disk) != 0) {
        return SJ_OK;
    }
    const uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
    const bool is_flowing =
        spool->counters.pending_bytes + size <= FLOWING_BYTES && left >= 2 * FLOWING_BYTES + size;
    if (left < reserve_on(spool, &disk) + size && !is_flowing) {
        return sj_fail(error, SJ_EFULL, "the disk of the spool %s is full", spool->directory);
    }
    return SJ_OK;
}

static sj_status append_locked(sj_spool *spool, sj_slice frame, sj_error *error)
{
    if (is_bulk(frame)) {
        SJ_TRY(check_space(spool, frame.size, error));
    }
    sj_spool_segment *last =
        spool->segment_count > 0 ? &spool->segments[spool->segment_count - 1] : NULL;
    if (last == NULL || last->sealed || last->size >= spool->segment_bytes) {
        SJ_TRY(add_segment(spool, spool->next_number, true, error));
        last = &spool->segments[spool->segment_count - 1];
    }
    return sj_spool_segment_append(last, frame, error);
}

uint64_t sj_spool_end(sj_spool *spool)
{
    pthread_mutex_lock(&spool->lock);
    uint64_t end = spool->ledger.watermark;
    if (spool->segment_count > 0) {
        const sj_spool_segment *last = &spool->segments[spool->segment_count - 1];
        const uint64_t tail = position_of(last->number, last->size);
        end = tail > end ? tail : end;
    }
    pthread_mutex_unlock(&spool->lock);
    return end;
}

bool sj_spool_was_used(sj_spool *spool)
{
    return sj_spool_end(spool) > position_of(1, 0); /* The first segment may be empty. */
}

sj_status sj_spool_append(sj_spool *spool, sj_slice frame, sj_error *error)
{
    if (frame.size < SJ_FRAME_PREFIX_BYTES || sj_spool_frame_length(frame.data) != frame.size) {
        return sj_fail(error, SJ_EINVAL, "not a whole frame: %zu bytes", frame.size);
    }
    pthread_mutex_lock(&spool->lock);
    const sj_status status = append_locked(spool, frame, error);
    if (status == SJ_OK) {
        spool->counters.appended_frames++;
        spool->counters.appended_bytes += frame.size;
        spool->counters.pending_frames++;
        spool->counters.pending_bytes += frame.size;
    } else if (status == SJ_EFULL) {
        spool->counters.refused_frames++;
    }
    pthread_mutex_unlock(&spool->lock);
    return status;
}

static sj_spool_segment *find_segment(sj_spool *spool, uint32_t number)
{
    for (size_t i = 0; i < spool->segment_count; ++i) {
        if (spool->segments[i].number == number) {
            return &spool->segments[i];
        }
    }
    return NULL;
}

/* Moves read_at to the next byte that exists. Returns false if there is none. */
static bool seek_readable(sj_spool *spool, sj_spool_segment *segment)
{
    for (size_t i = 0; i < spool->segment_count; ++i) {
        const sj_spool_segment *candidate = &spool->segments[i];
        if (candidate->number < number_of(spool->read_at)) {
            continue;
        }
        if (candidate->number > number_of(spool->read_at)) {
            spool->read_at = position_of(candidate->number, 0);
        }
        if (offset_of(spool->read_at) < candidate->size) {
            *segment = *candidate;
            return true;
        }
    }
    return false;
}

static sj_status reserve_buffer(sj_spool *spool, size_t size, uint8_t **bytes)
{
    frame_buffer *buffer = &spool->buffers[spool->next_buffer];
    if (buffer->capacity < size ||
        (buffer->capacity > BUFFER_KEEP_BYTES && size <= BUFFER_KEEP_BYTES)) {
        free(buffer->bytes);
        buffer->bytes = malloc(size);
        buffer->capacity = buffer->bytes != NULL ? size : 0;
        if (buffer->bytes == NULL) {
            return SJ_ENOMEM;
        }
    }
    spool->next_buffer = (spool->next_buffer + 1) % BUFFERS;
    *bytes = buffer->bytes;
    return SJ_OK;
}

static sj_status load_frame(sj_spool *spool, const sj_spool_segment *segment, uint64_t offset,
                            sj_slice *frame)
{
    uint8_t prefix[SJ_FRAME_PREFIX_BYTES];
    if (segment->size - offset < sizeof(prefix)) {
        return SJ_ECORRUPT;
    }
    SJ_TRY(sj_spool_segment_read(segment, offset, prefix, sizeof(prefix)));
    const size_t length = sj_spool_frame_length(prefix);
    if (length == 0 || length > segment->size - offset) {
        return SJ_ECORRUPT;
    }
    uint8_t *bytes = NULL;
    SJ_TRY(reserve_buffer(spool, length, &bytes));
    SJ_TRY(sj_spool_segment_read(segment, offset, bytes, length));
    *frame = (sj_slice){.data = bytes, .size = length};
    sj_frame_view view;
    const sj_status status = sj_frame_read(*frame, &view);
    /* The collector decides about a frame of another major version. */
    return status == SJ_OK || status == SJ_EVERSION ? SJ_OK : SJ_ECORRUPT;
}

/* Deletes segments that are wholly below the watermark; see the design notes for the order. */
static void release_segments(sj_spool *spool)
{
    const uint64_t watermark = spool->ledger.watermark;
    size_t done = 0;
    while (done + 1 < spool->segment_count) {
        const sj_spool_segment *segment = &spool->segments[done];
        if (position_of(segment->number, segment->size) > watermark) {
            break;
        }
        done++;
    }
    if (done == 0 || sj_spool_ack_log_sync(&spool->ledger) != SJ_OK) {
        return;
    }
    for (size_t i = 0; i < done; ++i) {
        retire_segment(spool, &spool->segments[i]);
    }
    spool->segment_count -= done;
    memmove(spool->segments, spool->segments + done,
            spool->segment_count * sizeof(*spool->segments));
}

/* Raises the watermark over the acknowledged frames at the front of `given`. */
static sj_status settle(sj_spool *spool)
{
    size_t done = 0;
    while (done < spool->given_count && spool->given[done].acknowledged) {
        done++;
    }
    if (done == 0) {
        return SJ_OK;
    }
    const given_frame last = spool->given[done - 1];
    spool->given_count -= done;
    spool->cursor = spool->cursor > done ? spool->cursor - done : 0;
    memmove(spool->given, spool->given + done, spool->given_count * sizeof(*spool->given));
    if (spool->counters.pending_bytes == 0) {
        spool->counters.pending_frames = 0; /* Damage makes the count at open an estimate. */
    }
    SJ_TRY(sj_spool_ack_log_advance(&spool->ledger, last.position + last.length));
    release_segments(spool);
    return SJ_OK;
}

static sj_status note_given(sj_spool *spool, uint64_t position, size_t length, bool acknowledged)
{
    SJ_TRY(sj_array_reserve(&spool->given, &spool->given_capacity, spool->given_count, 1,
                            sizeof(*spool->given)));
    spool->given[spool->given_count++] = (given_frame){
        .position = position, .length = (uint32_t)length, .acknowledged = acknowledged};
    spool->cursor = spool->given_count;
    spool->read_at = position + length;
    return SJ_OK;
}

/* Skips damaged bytes up to the next sound frame or the end of the segment, and sets them aside.
 * Returns SJ_ECORRUPT if it skipped them. */
static sj_status skip_damage(sj_spool *spool, const sj_spool_segment *segment, uint64_t offset)
{
    const size_t size = (size_t)(segment->size - offset);
    uint8_t *bytes = malloc(size);
    if (bytes == NULL) {
        return SJ_ENOMEM;
    }
    sj_status status = sj_spool_segment_read(segment, offset, bytes, size);
    if (status == SJ_EIO) {
        free(bytes);
        return status;
    }
    /* A file that has become shorter has no frames left. */
    size_t length = size;
    if (status == SJ_OK) {
        length = 1 + sj_spool_find_frame((sj_slice){.data = bytes + 1, .size = size - 1});
    }
    const uint64_t position = position_of(segment->number, offset);
    pthread_mutex_lock(&spool->lock);
    status = sj_spool_aside_add(spool->directory, &spool->aside, position,
                                (sj_slice){.data = bytes, .size = length}, NULL)
                 ? note_given(spool, position, length, true)
                 : SJ_EFULL;
    if (status == SJ_OK) {
        spool->counters.corrupt_frames++;
        spool->counters.pending_bytes -= length;
        spool->counters.pending_frames -= spool->counters.pending_frames > 0;
        status = settle(spool);
    }
    pthread_mutex_unlock(&spool->lock);
    free(bytes);
    return status == SJ_OK ? SJ_ECORRUPT : status;
}

/* Chooses the next frame: one given before and not acknowledged, or one never given. */
static sj_status choose_next(sj_spool *spool, sj_spool_segment *segment, uint64_t *position,
                             bool *again)
{
    while (spool->cursor < spool->given_count && spool->given[spool->cursor].acknowledged) {
        spool->cursor++;
    }
    *again = spool->cursor < spool->given_count;
    if (*again) {
        *position = spool->given[spool->cursor++].position;
        const sj_spool_segment *found = find_segment(spool, number_of(*position));
        if (found == NULL) {
            return SJ_EIO;
        }
        *segment = *found;
        return SJ_OK;
    }
    if (!seek_readable(spool, segment)) {
        return SJ_EAGAIN;
    }
    *position = spool->read_at;
    return SJ_OK;
}

sj_status sj_spool_next(sj_spool *spool, sj_slice *frame, uint64_t *position)
{
    sj_spool_segment segment;
    bool again = false;
    pthread_mutex_lock(&spool->lock);
    sj_status status = choose_next(spool, &segment, position, &again);
    pthread_mutex_unlock(&spool->lock);
    if (status != SJ_OK) {
        return status;
    }
    status = load_frame(spool, &segment, offset_of(*position), frame);
    if (again && status == SJ_ECORRUPT) { /* It was damaged after it was first given. */
        SJ_TRY(sj_spool_reject(spool, *position, NULL));
    }
    if (again) {
        return status;
    }
    if (status == SJ_ECORRUPT) {
        return skip_damage(spool, &segment, offset_of(*position));
    }
    if (status == SJ_OK) {
        pthread_mutex_lock(&spool->lock);
        status = note_given(spool, *position, frame->size, false);
        pthread_mutex_unlock(&spool->lock);
    }
    return status;
}

static given_frame *find_given(sj_spool *spool, uint64_t position)
{
    for (size_t i = 0; i < spool->given_count; ++i) {
        if (spool->given[i].position == position) {
            return &spool->given[i];
        }
    }
    return NULL;
}

static sj_status acknowledge_locked(sj_spool *spool, uint64_t position)
{
    given_frame *given = find_given(spool, position);
    if (given == NULL || given->acknowledged) {
        return position < spool->ledger.watermark || given != NULL ? SJ_OK : SJ_EINVAL;
    }
    given->acknowledged = true;
    spool->counters.acknowledged_frames++;
    spool->counters.pending_bytes -= given->length;
    spool->counters.pending_frames -= spool->counters.pending_frames > 0;
    return settle(spool);
}

sj_status sj_spool_acknowledge(sj_spool *spool, uint64_t position)
{
    pthread_mutex_lock(&spool->lock);
    const sj_status status = acknowledge_locked(spool, position);
    pthread_mutex_unlock(&spool->lock);
    return status;
}

sj_status sj_spool_reject(sj_spool *spool, uint64_t position, const char *why)
{
    pthread_mutex_lock(&spool->lock);
    const given_frame *given = find_given(spool, position);
    const sj_spool_segment *segment = find_segment(spool, number_of(position));
    if (given == NULL || segment == NULL || given->acknowledged) {
        pthread_mutex_unlock(&spool->lock);
        return SJ_EINVAL;
    }
    const uint32_t length = given->length;
    uint8_t *bytes = malloc(length);
    const bool is_read = bytes != NULL && sj_spool_segment_read(segment, offset_of(position), bytes,
                                                                length) == SJ_OK;
    const sj_slice kept = {.data = is_read ? bytes : NULL, .size = length};
    sj_status status = SJ_EFULL;
    if (sj_spool_aside_add(spool->directory, &spool->aside, position, kept, why)) {
        status = acknowledge_locked(spool, position);
        spool->counters.acknowledged_frames--;
        spool->counters.rejected_frames++;
    }
    free(bytes);
    pthread_mutex_unlock(&spool->lock);
    return status;
}

/* Opens the file of `announced` for a walk, unless the walk has it open. Returns SJ_ENOTFOUND if
 * nothing was kept. */
static sj_status open_recalled(sj_spool *spool, const sj_spool_recall *recall)
{
    if (recall->at != 0 && spool->recalled.file >= 0) {
        return SJ_OK;
    }
    sj_spool_segment_close(&spool->recalled);
    return sj_spool_announced_read(spool->directory, &spool->announced, &spool->recalled);
}

/* Moves a walk to the next byte that was given before. Returns SJ_EAGAIN at the end, or SJ_EIO. */
static sj_status seek_recalled(sj_spool *spool, sj_spool_recall *recall, sj_spool_segment *segment)
{
    if (number_of(recall->at) == 0) {
        const sj_status status = open_recalled(spool, recall);
        if (status == SJ_OK && recall->at < spool->recalled.size) {
            *segment = spool->recalled;
            return SJ_OK;
        }
        if (status != SJ_OK && status != SJ_ENOTFOUND) {
            return status;
        }
        recall->at = position_of(1, 0);
    }
    sj_spool_segment_close(&spool->recalled);
    for (size_t i = 0; i < spool->segment_count; ++i) {
        const sj_spool_segment *candidate = &spool->segments[i];
        if (candidate->number > number_of(recall->at)) {
            recall->at = position_of(candidate->number, 0);
        }
        if (candidate->number == number_of(recall->at) && offset_of(recall->at) < candidate->size &&
            recall->at < spool->read_at) {
            *segment = *candidate;
            return SJ_OK;
        }
    }
    return SJ_EAGAIN;
}

static bool is_wanted(const sj_spool_recall *recall, const sj_spool_frame_kind *kind)
{
    return kind->is_announcement && kind->has_session &&
           !(recall->is_brief && (kind->type == SJ_FRAME_MODULE || kind->is_deep_stack));
}

sj_status sj_spool_recall_next(sj_spool *spool, sj_spool_recall *recall, sj_slice *frame)
{
    while (true) {
        sj_spool_segment segment;
        sj_spool_frame_kind kind;
        pthread_mutex_lock(&spool->lock);
        const sj_status found = seek_recalled(spool, recall, &segment);
        pthread_mutex_unlock(&spool->lock);
        SJ_TRY(found);
        const uint64_t offset = offset_of(recall->at);
        SJ_TRY(sj_spool_frame_kind_of(&segment, offset, &kind));
        recall->at = kind.frame_bytes != 0 ? recall->at + kind.frame_bytes
                                           : position_of(segment.number + 1, 0);
        if (kind.frame_bytes != 0 && is_wanted(recall, &kind)) {
            const sj_status status = load_frame(spool, &segment, offset, frame);
            if (status != SJ_ECORRUPT) {
                return status;
            }
        }
    }
}

void sj_spool_rewind(sj_spool *spool)
{
    pthread_mutex_lock(&spool->lock);
    spool->cursor = 0;
    pthread_mutex_unlock(&spool->lock);
}

void sj_spool_get_counters(sj_spool *spool, sj_spool_counters *counters)
{
    pthread_mutex_lock(&spool->lock);
    *counters = spool->counters;
    counters->unkept_frames = spool->announced.unkept_frames;
    pthread_mutex_unlock(&spool->lock);
}

void sj_spool_close(sj_spool *spool)
{
    if (spool == NULL) {
        return;
    }
    for (size_t i = 0; i < spool->segment_count; ++i) {
        sj_spool_segment_close(&spool->segments[i]);
    }
    sj_spool_segment_close(&spool->recalled);
    sj_spool_ack_log_close(&spool->ledger);
    for (unsigned i = 0; i < BUFFERS; ++i) {
        free(spool->buffers[i].bytes);
    }
    pthread_mutex_destroy(&spool->lock);
    free(spool->segments);
    free(spool->given);
    free(spool->directory);
    free(spool);
}

sj_status sj_spool_remove(sj_spool *spool, sj_error *error)
{
    if (spool->counters.pending_bytes != 0) {
        return sj_fail(error, SJ_EAGAIN, "the spool %s still holds %llu bytes not acknowledged",
                       spool->directory, (unsigned long long)spool->counters.pending_bytes);
    }
    sj_spool_announced_remove(spool->directory);
    for (size_t i = 0; i < spool->segment_count; ++i) {
        unlink_segment(spool, spool->segments[i].number);
    }
    sj_spool_ack_log_remove(spool->directory);
    sj_spool_collector_remove(spool->directory);
    sj_spool_secret_remove(spool->directory);
    rmdir(spool->directory); /* Stays if frames were set aside. */
    sj_spool_close(spool);
    return SJ_OK;
}
