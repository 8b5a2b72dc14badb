/* A pool of processes that answer SQL questions. A user's statement may need any amount of memory,
 * disk space and time. So it runs in a separate process with limits (question_worker.h). A process
 * that exceeds its limits is killed and replaced. Idle processes keep their caches and wait for the
 * next question. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_QUESTION_POOL_H
#define SJ_COLLECTOR_SERVER_HTTP_QUESTION_POOL_H

#include "proto/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Limits of a process. */
typedef struct sj_question_limits {
    int64_t heap_bytes; /* SQLite's memory */
    /* all memory (RLIMIT_DATA); at least twice heap_bytes, because decoded blocks are not in the
     * heap of SQLite */
    int64_t data_bytes;
    int64_t file_bytes; /* size of each temporary file */
} sj_question_limits;

extern const sj_question_limits sj_question_default_limits;

typedef struct sj_question_pool sj_question_pool;

/* Creates a pool for the database at `path`. Processes start when they are needed. main() must
 * begin with sj_question_worker_main. Returns SJ_ENOMEM; SJ_EPERM if a pool started this process as
 * a worker, so that its main() cannot have begun that way. */
SJ_MUST_CHECK sj_status sj_question_pool_new(const char *path, const sj_question_limits *limits,
                                             sj_question_pool **pool, sj_error *error);

/* Ends the processes. No question may be under way. NULL is allowed. */
void sj_question_pool_free(sj_question_pool *pool);

/* Answers a question (question.h). `*result` is JSON text from malloc, owned by the caller.
 * Calls `is_wanted` (NULL: always true) every few milliseconds. If it returns false, kills the
 * process and returns SJ_ECLOSED. Also kills the process, and returns SJ_ETIMEDOUT, two
 * seconds after SJ_QUESTION_WAITING_FACTOR times the question's time.
 *
 * Returns SJ_ELIMIT for too much memory, too large files, or an ended process; SJ_EAGAIN for too
 * many questions at once; SJ_EIO if a process cannot be started; or errors of sj_question_run.
 * Thread-safe; blocks. */
SJ_MUST_CHECK sj_status sj_question_pool_ask(sj_question_pool *pool, const json_t *question,
                                             bool (*is_wanted)(void *context), void *context,
                                             char **result, sj_error *error);

#endif
