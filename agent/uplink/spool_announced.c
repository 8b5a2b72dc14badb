#include "agent/uplink/spool_announced.h"

#include "proto/block/block.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* LOOK_BYTES covers a frame's prefix, the header of a block's frame and the start of the block. */
enum { LOOK_BYTES = 512, SESSION_FIELD = 0x0a };

static void path_of(const char *directory, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%.3900s/announced", directory);
}

static bool is_deep_stack(sj_slice block)
{
    sj_block_header header;
    return sj_block_read_header(block, &header) == SJ_OK && header.kind == SJ_BLOCK_DEEP_FRAMES;
}

static bool describes(uint16_t type)
{
    switch (type) {
    case SJ_FRAME_SESSION:
    case SJ_FRAME_PROCESS:
    case SJ_FRAME_MODULE:
    case SJ_FRAME_THREAD:
    case SJ_FRAME_CLOCK:
    case SJ_FRAME_MAPPING:
    case SJ_FRAME_UNHOOKED:
    case SJ_FRAME_POLICY:
        return true;
    default:
        return false;
    }
}

/* Reads the kind from the first bytes of a frame. All headers begin with the session's id. */
static void read_kind(sj_slice start, sj_spool_frame_kind *kind)
{
    sj_reader reader = sj_reader_of(start.data, start.size);
    sj_read_bytes(&reader, 6);
    kind->type = sj_read_u16(&reader);
    const uint32_t header_bytes = sj_read_u32(&reader);
    sj_read_bytes(&reader, SJ_FRAME_PREFIX_BYTES - 12);
    sj_reader header = reader;
    const uint8_t field = sj_read_u8(&header);
    const uint8_t size = sj_read_u8(&header);
    const uint8_t *session = sj_read_bytes(&header, sizeof(kind->session.bytes));
    kind->has_session =
        session != NULL && field == SESSION_FIELD && size == sizeof(kind->session.bytes);
    if (kind->has_session) {
        memcpy(kind->session.bytes, session, sizeof(kind->session.bytes));
    }
    if (kind->type == SJ_FRAME_BLOCK && sj_read_bytes(&reader, header_bytes) != NULL) {
        const size_t left = sj_reader_left(&reader);
        const sj_slice block = {.data = sj_read_bytes(&reader, left), .size = left};
        kind->is_deep_stack = is_deep_stack(block);
    }
    kind->is_announcement = describes(kind->type) || kind->is_deep_stack;
}

sj_status sj_spool_frame_kind_of(const sj_spool_segment *segment, uint64_t offset,
                                 sj_spool_frame_kind *kind)
{
    uint8_t bytes[LOOK_BYTES];
    const uint64_t left = segment->size > offset ? segment->size - offset : 0;
    const size_t size = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);
    *kind = (sj_spool_frame_kind){0};
    if (size < SJ_FRAME_PREFIX_BYTES) {
        return SJ_OK;
    }
    const sj_status status = sj_spool_segment_read(segment, offset, bytes, size);
    if (status != SJ_OK) {
        return status == SJ_ECORRUPT ? SJ_OK : status; /* The file has become shorter. */
    }
    const size_t length = sj_spool_frame_length(bytes);
    if (length != 0 && length <= left) {
        kind->frame_bytes = length;
        read_kind((sj_slice){.data = bytes, .size = size < length ? size : length}, kind);
    }
    return SJ_OK;
}

/* Returns the end of the last whole frame in the file. */
static uint64_t find_end(const sj_spool_segment *segment)
{
    sj_spool_frame_kind kind;
    uint64_t end = 0;
    while (sj_spool_frame_kind_of(segment, end, &kind) == SJ_OK && kind.frame_bytes != 0) {
        end += kind.frame_bytes;
    }
    return end;
}

static sj_status open_file(const char *directory, int flags, sj_spool_segment *segment)
{
    char path[PATH_MAX];
    struct stat about;
    path_of(directory, path);
    *segment = (sj_spool_segment){.file = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600)};
    if (segment->file < 0) {
        return errno == ENOENT ? SJ_ENOTFOUND : SJ_EIO;
    }
    if (fstat(segment->file, &about) != 0) {
        sj_spool_segment_close(segment);
        return SJ_EIO;
    }
    segment->size = (uint64_t)about.st_size;
    return SJ_OK;
}

void sj_spool_announced_open(const char *directory, sj_spool_announced *announced)
{
    sj_spool_segment segment;
    *announced = (sj_spool_announced){0};
    if (open_file(directory, O_RDWR, &segment) != SJ_OK) {
        return;
    }
    const uint64_t end = find_end(&segment);
    if (end == segment.size || ftruncate(segment.file, (off_t)end) == 0) {
        announced->bytes = end;
    } else {
        sj_spool_announced_remove(directory);
    }
    sj_spool_segment_close(&segment);
}

sj_status sj_spool_announced_read(const char *directory, const sj_spool_announced *announced,
                                  sj_spool_segment *segment)
{
    if (announced->bytes == 0) {
        return SJ_ENOTFOUND;
    }
    SJ_TRY(open_file(directory, O_RDONLY, segment));
    segment->size = announced->bytes;
    return SJ_OK;
}

/* Copies one frame. Returns false if it does not fit. */
static bool copy_frame(sj_spool_announced *announced, sj_spool_segment *target,
                       const sj_spool_segment *source, uint64_t offset,
                       const sj_spool_frame_kind *kind, uint64_t most_bytes)
{
    sj_frame_view view;
    const uint64_t most = kind->is_deep_stack ? most_bytes / SJ_ANNOUNCED_DEEP_SHARE : most_bytes;
    if (announced->bytes + kind->frame_bytes > most) {
        return false;
    }
    uint8_t *bytes = malloc(kind->frame_bytes);
    const sj_slice frame = {.data = bytes, .size = kind->frame_bytes};
    bool is_kept =
        bytes != NULL && sj_spool_segment_read(source, offset, bytes, frame.size) == SJ_OK;
    if (is_kept && sj_frame_read(frame, &view) == SJ_OK) { /* A damaged frame is useless. */
        is_kept = sj_spool_segment_append(target, frame, NULL) == SJ_OK;
        announced->bytes = target->size;
    }
    free(bytes);
    return is_kept;
}

void sj_spool_announced_keep(const char *directory, sj_spool_announced *announced,
                             const sj_spool_segment *segment, uint64_t most_bytes)
{
    const uint64_t most =
        most_bytes < SJ_ANNOUNCED_MOST_BYTES ? most_bytes : SJ_ANNOUNCED_MOST_BYTES;
    sj_spool_frame_kind kind;
    sj_spool_segment target = {.file = -1};
    bool is_open = false;
    uint64_t at = 0;
    for (; sj_spool_frame_kind_of(segment, at, &kind) == SJ_OK && kind.frame_bytes != 0;
         at += kind.frame_bytes) {
        if (!kind.is_announcement) {
            continue;
        }
        if (!is_open) {
            is_open = open_file(directory, O_RDWR | O_CREAT, &target) == SJ_OK;
            target.size = announced->bytes;
        }
        if (!is_open || target.sealed ||
            !copy_frame(announced, &target, segment, at, &kind, most)) {
            announced->unkept_frames++;
        }
    }
    announced->unkept_frames += at < segment->size; /* Bytes after a damage are unknown. */
    sj_spool_segment_close(&target);
}

void sj_spool_announced_remove(const char *directory)
{
    char path[PATH_MAX];
    path_of(directory, path);
    unlink(path);
}
