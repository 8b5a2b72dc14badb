/* Reads the frames of a database's write-ahead log as SQLite does when it recovers one
 * (https://sqlite.org/fileformat2.html#walformat). Does not lock anything. */
#ifndef SJ_COLLECTOR_SERVER_STORE_LOG_FRAMES_H
#define SJ_COLLECTOR_SERVER_STORE_LOG_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_LOG_HEADER_BYTES = 32, SJ_LOG_FRAME_HEADER_BYTES = 24, SJ_LOG_SALT_BYTES = 8 };

typedef struct sj_log_frames {
    int file;
    uint32_t page_bytes;
    uint8_t salts[SJ_LOG_SALT_BYTES]; /* differ in each use of the file */
    uint32_t sums[2];                 /* checksums of everything before the next frame */
    bool is_big_endian;               /* byte order of the words that are summed */
    int64_t at;                       /* position of the next frame */
    uint8_t *bytes;                   /* header and page of the current frame */
} sj_log_frames;

typedef struct sj_log_frame {
    uint32_t page_number;
    bool is_commit;      /* the last frame of a transaction */
    const uint8_t *page; /* valid until the next call */
} sj_log_frame;

/* Reads four bytes as SQLite's files store numbers: big-endian. Thread-safe. */
uint32_t sj_log_word(const uint8_t *bytes);

/* Checks the magic number and the checksums of a log's header. Thread-safe. */
bool sj_log_header_is_sound(const uint8_t header[SJ_LOG_HEADER_BYTES]);

/* Opens the log `path`. Returns false if there is none, if its header is invalid, or if out of
 * memory. The caller frees `*log` with sj_log_frames_close, also after false. */
bool sj_log_frames_open(const char *path, sj_log_frames *log);
void sj_log_frames_close(sj_log_frames *log);

/* Reads the next frame. Returns false after the last valid frame, or on a read error. Blocks. */
bool sj_log_frames_next(sj_log_frames *log, sj_log_frame *frame);

#endif
