#include "agent/uplink/spool_segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void sj_spool_segment_name(uint32_t number, char name[SJ_SPOOL_SEGMENT_NAME_BYTES])
{
    snprintf(name, SJ_SPOOL_SEGMENT_NAME_BYTES, "%08u.frames", number);
}

uint32_t sj_spool_segment_number(const char *name)
{
    char *end = NULL;
    if (name[0] < '0' || name[0] > '9') {
        return 0;
    }
    const unsigned long number = strtoul(name, &end, 10);
    return end - name >= 8 && strcmp(end, ".frames") == 0 && number < UINT32_MAX ? (uint32_t)number
                                                                                 : 0;
}

static sj_status status_of_errno(int number)
{
    return number == ENOSPC || number == EDQUOT || number == EFBIG ? SJ_EFULL : SJ_EIO;
}

sj_status sj_spool_segment_open(const char *directory, uint32_t number, bool create,
                                sj_spool_segment *segment, sj_error *error)
{
    char name[SJ_SPOOL_SEGMENT_NAME_BYTES];
    char path[4096];
    sj_spool_segment_name(number, name);
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    const int flags = O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_EXCL : 0);
    *segment = (sj_spool_segment){.number = number, .file = open(path, flags, 0600)};
    if (segment->file < 0) {
        return sj_fail(error, status_of_errno(errno), "cannot open %s: %s", path, strerror(errno));
    }
    struct stat status;
    if (fstat(segment->file, &status) != 0) {
        sj_spool_segment_close(segment);
        return sj_fail(error, SJ_EIO, "cannot look at %s: %s", path, strerror(errno));
    }
    segment->size = (uint64_t)status.st_size;
    return SJ_OK;
}

sj_status sj_spool_segment_append(sj_spool_segment *segment, sj_slice bytes, sj_error *error)
{
    size_t written = 0;
    while (written < bytes.size) {
        const ssize_t count = pwrite(segment->file, bytes.data + written, bytes.size - written,
                                     (off_t)(segment->size + written));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            const int number = count < 0 ? errno : ENOSPC;
            if (ftruncate(segment->file, (off_t)segment->size) != 0) {
                segment->sealed = true;
            }
            return sj_fail(error, status_of_errno(number), "cannot write spool segment %u: %s",
                           segment->number, strerror(number));
        }
        written += (size_t)count;
    }
    segment->size += bytes.size;
    return SJ_OK;
}

sj_status sj_spool_segment_read(const sj_spool_segment *segment, uint64_t offset, uint8_t *output,
                                size_t size)
{
    size_t done = 0;
    while (done < size) {
        const ssize_t count =
            pread(segment->file, output + done, size - done, (off_t)(offset + done));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return SJ_EIO;
        }
        if (count == 0) {
            return SJ_ECORRUPT;
        }
        done += (size_t)count;
    }
    return SJ_OK;
}

size_t sj_spool_frame_length(const uint8_t prefix[SJ_FRAME_PREFIX_BYTES])
{
    sj_reader reader = sj_reader_of(prefix, SJ_FRAME_PREFIX_BYTES);
    const uint32_t magic = sj_read_u32(&reader);
    sj_read_bytes(&reader, 4);
    const uint64_t header = sj_read_u32(&reader);
    const uint64_t payload = sj_read_u32(&reader);
    const uint64_t length = SJ_FRAME_PREFIX_BYTES + header + payload;
    return magic == SJ_FRAME_MAGIC && header <= SJ_FRAME_MAX_HEADER_BYTES &&
                   length <= SJ_FRAME_MAX_BYTES
               ? (size_t)length
               : 0;
}

size_t sj_spool_find_frame(sj_slice bytes)
{
    const uint8_t magic[4] = {'S', 'J', 'F', '1'};
    size_t at = 0;
    while (at + SJ_FRAME_PREFIX_BYTES <= bytes.size) {
        const uint8_t *found = memmem(bytes.data + at, bytes.size - at, magic, sizeof(magic));
        if (found == NULL) {
            break;
        }
        at = (size_t)(found - bytes.data);
        sj_frame_view view;
        const sj_slice rest = {.data = found, .size = bytes.size - at};
        if (sj_frame_read(rest, &view) == SJ_OK) {
            return at;
        }
        at++;
    }
    return bytes.size;
}

uint64_t sj_spool_segment_count_frames(const sj_spool_segment *segment, uint64_t offset)
{
    uint64_t frames = 0;
    while (offset < segment->size) {
        uint8_t prefix[SJ_FRAME_PREFIX_BYTES];
        frames++;
        if (segment->size - offset < sizeof(prefix) ||
            sj_spool_segment_read(segment, offset, prefix, sizeof(prefix)) != SJ_OK) {
            break;
        }
        const size_t length = sj_spool_frame_length(prefix);
        if (length == 0 || length > segment->size - offset) {
            break;
        }
        offset += length;
    }
    return frames;
}

void sj_spool_segment_close(sj_spool_segment *segment)
{
    if (segment->file >= 0) {
        close(segment->file);
    }
    segment->file = -1;
}
