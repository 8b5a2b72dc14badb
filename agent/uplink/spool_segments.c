/* The list of a spool's segments, which follows the files in its directory. */
#include "agent/uplink/spool_state.h"

#include "proto/base/array.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void sj_spool_unlink_segment(const sj_spool *spool, uint32_t number)
{
    char name[SJ_SPOOL_SEGMENT_NAME_BYTES];
    char path[SJ_SPOOL_PATH_BYTES];
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
        return sj_fail(error, errno == ENOMEM ? SJ_ENOMEM : SJ_EIO, "cannot read %s: %s", directory,
                       strerror(errno));
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

sj_status sj_spool_add_segment(sj_spool *spool, uint32_t number, bool create, sj_error *error)
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
                                 sj_spool_position(segment->number, from + whole),
                                 (sj_slice){.data = bytes + whole, .size = size - whole});
        segment->size = from + whole;
        if (ftruncate(segment->file, (off_t)segment->size) != 0) {
            segment->sealed = true;
        }
    }
    free(bytes);
    return status == SJ_OK ? SJ_OK : sj_fail(error, status, "cannot read the spool's last segment");
}

void sj_spool_retire_segment(sj_spool *spool, sj_spool_segment *segment)
{
    sj_spool_announced_keep(spool->directory, &spool->announced, segment,
                            sj_spool_most_announced(spool));
    sj_spool_segment_close(segment);
    sj_spool_unlink_segment(spool, segment->number);
}

sj_status sj_spool_load_segments(sj_spool *spool, sj_error *error)
{
    uint32_t *numbers = NULL;
    size_t count = 0;
    const uint32_t acknowledged = sj_spool_position_number(spool->ledger.watermark);
    sj_status status = list_segments(spool->directory, &numbers, &count, error);
    spool->next_number = acknowledged + 1;
    for (size_t i = 0; status == SJ_OK && i < count; ++i) {
        sj_spool_segment over;
        if (numbers[i] >= acknowledged) {
            status = sj_spool_add_segment(spool, numbers[i], false, error);
        } else if (sj_spool_segment_open(spool->directory, numbers[i], false, &over, NULL) ==
                   SJ_OK) {
            sj_spool_retire_segment(spool, &over);
        } else {
            spool->announced.unkept_frames++; /* At least one: its announcements are unreadable. */
            sj_spool_unlink_segment(spool, numbers[i]);
        }
    }
    free(numbers);
    for (size_t i = 0; status == SJ_OK && i < spool->segment_count; ++i) {
        sj_spool_segment *segment = &spool->segments[i];
        const uint64_t from =
            segment->number == acknowledged ? sj_spool_position_offset(spool->ledger.watermark) : 0;
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

sj_spool_segment *sj_spool_find_segment(sj_spool *spool, uint32_t number)
{
    for (size_t i = 0; i < spool->segment_count; ++i) {
        if (spool->segments[i].number == number) {
            return &spool->segments[i];
        }
    }
    return NULL;
}
