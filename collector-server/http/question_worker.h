/* The process that answers questions (question_pool.h): this very program, started again by the
 * name SJ_QUESTION_WORKER. It has no network, starts no program and signals none (seccomp), and its
 * memory, files and CPU time are limited. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_QUESTION_WORKER_H
#define SJ_COLLECTOR_SERVER_HTTP_QUESTION_WORKER_H

#include "collector-server/http/question_pool.h"

#define SJ_QUESTION_WORKER "sojourn-questions"

/* What goes before the bytes of a question, and of an answer. */
typedef struct sj_question_head {
    int32_t status; /* of an answer: not SJ_OK: the bytes are an error's text */
    uint32_t size;  /* of the bytes behind it */
} sj_question_head;

/* sj_question_worker_main answers questions and ends the process, if the program was started for
 * that; else it returns. A process that cannot be confined says so to each question. To be called
 * first in main(). */
void sj_question_worker_main(int argc, char **argv);

/* sj_question_confine takes from this process what answering does not need, for good; system calls
 * that are not allowed fail with EPERM. SJ_EIO: the kernel refuses. */
SJ_MUST_CHECK sj_status sj_question_confine(const sj_question_limits *limits, sj_error *error);

#endif
