/* The files of a live function.txt. DIRECTORY/function.txt has the newest lines, function.1.txt the
 * lines before them, function.2.txt still older lines, and so on. Not thread-safe. */
#ifndef SJ_AGENT_SESSION_FUNCTION_LOG_FILE_H
#define SJ_AGENT_SESSION_FUNCTION_LOG_FILE_H

#include "proto/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_FUNCTION_LOG_BUFFER = 256 * 1024 };

typedef struct sj_function_log_file {
    int directory; /* descriptor of the folder; locked, so that only one recording writes there */
    int fd;
    uint64_t max_bytes; /* limit of a file; 0: none */
    uint32_t max_files; /* function.txt included */
    uint64_t bytes;     /* bytes of the file, including the buffer */
    uint64_t removed;   /* number of files that were deleted to make space for newer ones */
    int failure;        /* errno of the write that failed; nothing is written after that; 0: none */
    size_t used;
    char buffer[SJ_FUNCTION_LOG_BUFFER];
} sj_function_log_file;

/* Makes the folder, if necessary, and an empty function.txt. Renames the files of an earlier
 * recording. Close `file` even after an error. Returns SJ_EIO, SJ_EPERM (another user's folder), or
 * SJ_EAGAIN: another recording writes there. */
SJ_MUST_CHECK sj_status sj_function_log_file_open(const char *directory, uint64_t max_bytes,
                                                  uint32_t max_files, sj_function_log_file *file,
                                                  sj_error *error);

/* Adds a line. Starts the next file if this file would become longer than `max_bytes`. Drops a line
 * that is longer than the buffer. */
void sj_function_log_file_write(sj_function_log_file *file, const char *line, size_t bytes);

/* Writes the buffer to the file. */
void sj_function_log_file_flush(sj_function_log_file *file);
void sj_function_log_file_close(sj_function_log_file *file);

#endif
