/* The files of a live function.txt: DIRECTORY/function.txt and, before it, function.1.txt (the
 * latest), function.2.txt ... One thread. */
#ifndef SJ_AGENT_SESSION_FUNCTION_LOG_FILE_H
#define SJ_AGENT_SESSION_FUNCTION_LOG_FILE_H

#include "proto/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_FUNCTION_LOG_BUFFER = 256 * 1024 };

typedef struct sj_function_log_file {
    int directory; /* locked: one writer a directory */
    int fd;
    uint64_t max_bytes; /* of a file; 0: no limit */
    uint32_t max_files; /* function.txt among them */
    uint64_t bytes;     /* of the file, what is in the buffer included */
    uint64_t removed;   /* files that made room for later ones */
    int failure;        /* errno of the write that failed: nothing is written any more */
    size_t used;
    char buffer[SJ_FUNCTION_LOG_BUFFER];
} sj_function_log_file;

/* sj_function_log_file_open makes the directory, if need be, and an empty function.txt; one of an
 * earlier recording is rotated. Close it also when it failed. SJ_EIO, SJ_EPERM (another user's
 * directory), SJ_EAGAIN: another recording writes there. */
SJ_MUST_CHECK sj_status sj_function_log_file_open(const char *directory, uint64_t max_bytes,
                                                  uint32_t max_files, sj_function_log_file *file,
                                                  sj_error *error);

/* sj_function_log_file_write adds a line, to the next file if it exceeds this one's limit. */
void sj_function_log_file_write(sj_function_log_file *file, const char *line, size_t bytes);

/* sj_function_log_file_flush writes what is in the buffer. */
void sj_function_log_file_flush(sj_function_log_file *file);
void sj_function_log_file_close(sj_function_log_file *file);

#endif
