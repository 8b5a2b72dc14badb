/* A process that answers questions (question_pool.h): this program, started again with the name
 * SJ_QUESTION_WORKER as argv[0]. Seccomp forbids it to use the network, start programs or send
 * signals. Its memory, files and CPU time are limited. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_QUESTION_WORKER_H
#define SJ_COLLECTOR_SERVER_HTTP_QUESTION_WORKER_H

#include "collector-server/http/question_pool.h"

#define SJ_QUESTION_WORKER "sojourn-questions"

/* How much lower the priority of a worker is than the server's (nice). The server then stores
 * frames and acknowledges them in time while all workers compute. */
enum { SJ_QUESTION_NICE = 10 };

/* The header before the bytes of a question, and of an answer. */
typedef struct sj_question_head {
    /* An sj_status, only in answers. If it is not SJ_OK, the bytes are the error's text. */
    int32_t status;
    uint32_t size; /* number of bytes that follow the header */
} sj_question_head;

/* If the program was started as a worker, answers questions and then ends the process. Otherwise
 * returns at once. If sj_question_confine fails, answers each question with its error. Call it
 * first in main(). */
void sj_question_worker_main(int argc, char **argv);

/* Permanently limits the memory, the files and the system calls of this process, and lowers its
 * priority by SJ_QUESTION_NICE. Forbidden system calls fail with EPERM. Returns SJ_EIO if the
 * kernel refuses. */
SJ_MUST_CHECK sj_status sj_question_confine(const sj_question_limits *limits, sj_error *error);

#endif
