#include "collector-server/store/log_frames.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LOG_MAGIC = 0x377f0682, /* or this plus one, if the checksums are of big-endian words */
    SUMMED_HEADER_BYTES = 24,
    SUMMED_FRAME_HEADER_BYTES = 8,
    LEAST_PAGE_BYTES = 512,
    MOST_PAGE_BYTES = 65536
};

uint32_t sj_log_word(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void add_to_sums(const uint8_t *bytes, size_t size, bool is_big_endian, uint32_t sums[2])
{
    for (size_t i = 0; i < size; i += 8) {
        const uint32_t a = sj_log_word(bytes + i);
        const uint32_t b = sj_log_word(bytes + i + 4);
        sums[0] += (is_big_endian ? a : __builtin_bswap32(a)) + sums[1];
        sums[1] += (is_big_endian ? b : __builtin_bswap32(b)) + sums[0];
    }
}

bool sj_log_header_is_sound(const uint8_t header[SJ_LOG_HEADER_BYTES])
{
    const uint32_t magic = sj_log_word(header);
    uint32_t sums[2] = {0, 0};
    add_to_sums(header, SUMMED_HEADER_BYTES, (magic & 1) != 0, sums);
    return (magic & ~1U) == LOG_MAGIC && sums[0] == sj_log_word(header + 24) &&
           sums[1] == sj_log_word(header + 28);
}

bool sj_log_frames_open(const char *path, sj_log_frames *log)
{
    uint8_t header[SJ_LOG_HEADER_BYTES];
    *log = (sj_log_frames){.file = open(path, O_RDONLY | O_CLOEXEC), .at = sizeof(header)};
    if (log->file < 0 || pread(log->file, header, sizeof(header), 0) != sizeof(header) ||
        !sj_log_header_is_sound(header)) {
        return false;
    }
    log->page_bytes = sj_log_word(header + 8);
    log->is_big_endian = (sj_log_word(header) & 1) != 0;
    memcpy(log->salts, header + 16, sizeof(log->salts));
    log->sums[0] = sj_log_word(header + 24);
    log->sums[1] = sj_log_word(header + 28);
    const bool is_possible = log->page_bytes >= LEAST_PAGE_BYTES &&
                             log->page_bytes <= MOST_PAGE_BYTES && log->page_bytes % 8 == 0;
    log->bytes = is_possible ? malloc(SJ_LOG_FRAME_HEADER_BYTES + (size_t)log->page_bytes) : NULL;
    return log->bytes != NULL;
}

void sj_log_frames_close(sj_log_frames *log)
{
    if (log->file >= 0) {
        close(log->file);
    }
    free(log->bytes);
    *log = (sj_log_frames){.file = -1};
}

bool sj_log_frames_next(sj_log_frames *log, sj_log_frame *frame)
{
    const uint8_t *header = log->bytes;
    const uint8_t *page = header + SJ_LOG_FRAME_HEADER_BYTES;
    const size_t size = SJ_LOG_FRAME_HEADER_BYTES + (size_t)log->page_bytes;
    if (pread(log->file, log->bytes, size, log->at) != (ssize_t)size ||
        memcmp(header + 8, log->salts, sizeof(log->salts)) != 0 || sj_log_word(header) == 0) {
        return false;
    }
    add_to_sums(header, SUMMED_FRAME_HEADER_BYTES, log->is_big_endian, log->sums);
    add_to_sums(page, log->page_bytes, log->is_big_endian, log->sums);
    if (log->sums[0] != sj_log_word(header + 16) || log->sums[1] != sj_log_word(header + 20)) {
        return false;
    }
    log->at += (int64_t)size;
    *frame = (sj_log_frame){.page_number = sj_log_word(header),
                            .is_commit = sj_log_word(header + 4) != 0,
                            .page = page};
    return true;
}
