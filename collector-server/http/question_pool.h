/* Processes that answer questions of SQL. What others wrote may ask for any memory, disk and time;
 * in a process of its own it has limits (question_worker.h), and one that exceeds them is killed
 * and replaced. Idle ones wait, with their caches, for the next question. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_QUESTION_POOL_H
#define SJ_COLLECTOR_SERVER_HTTP_QUESTION_POOL_H

#include "proto/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* What a process may use. */
typedef struct sj_question_limits {
    int64_t heap_bytes; /* SQLite's memory */
    int64_t
        data_bytes; /* all memory (RLIMIT_DATA); at least twice heap_bytes, for decoded blocks */
    int64_t file_bytes; /* each temporary file */
} sj_question_limits;

extern const sj_question_limits sj_question_default_limits;

typedef struct sj_question_pool sj_question_pool;

/* sj_question_pool_new makes a pool for the database at `path`; processes are started when they are
 * needed. The program has to begin with sj_question_worker_main. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_question_pool_new(const char *path, const sj_question_limits *limits,
                                             sj_question_pool **pool, sj_error *error);

/* sj_question_pool_free ends the processes. No question may be under way. NULL is allowed. */
void sj_question_pool_free(sj_question_pool *pool);

/* sj_question_pool_ask has a question (question.h) answered: `*answer` is JSON text, from malloc,
 * owned by the caller. `goes_on` is asked every few milliseconds; false kills the process
 * (SJ_ECLOSED). A process that does not answer some seconds after the question's time is killed,
 * too (SJ_ETIMEDOUT). SJ_ELIMIT: too much memory, too large files, or the process ended; SJ_EAGAIN:
 * too many questions at once; SJ_EIO: a process cannot be started; and errors of
 * sj_question_answer. Any thread; blocks. */
SJ_MUST_CHECK sj_status sj_question_pool_ask(sj_question_pool *pool, const json_t *question,
                                             bool (*goes_on)(void *context), void *context,
                                             char **answer, sj_error *error);

#endif
