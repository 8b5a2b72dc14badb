/* Complaints about peers: who sent what that was dropped, for the log; few enough to be read. */
#ifndef SJ_COLLECTOR_INGEST_COMPLAINTS_H
#define SJ_COLLECTOR_INGEST_COMPLAINTS_H

#include <nng/nng.h>
#include <pthread.h>
#include <stdint.h>

typedef struct sj_complaints {
    pthread_mutex_t lock;
    void (*tell)(void *context, const char *line); /* NULL: nobody listens */
    void *context;
    uint64_t second;     /* MONOTONIC */
    unsigned told;       /* in that second */
    uint64_t suppressed; /* since the last line */
} sj_complaints;

enum { SJ_COMPLAINTS_A_SECOND = 10 };

/* sj_complaints_init makes them; sj_complaints_deinit ends them, after all threads. */
void sj_complaints_init(sj_complaints *complaints, void (*tell)(void *, const char *),
                        void *context);
void sj_complaints_deinit(sj_complaints *complaints);

/* sj_complain tells of a peer by its address. At most SJ_COMPLAINTS_A_SECOND lines a second; how
 * many were left out is told with the next. Any thread; `tell` is called under a lock. */
void sj_complain(sj_complaints *complaints, nng_pipe peer, const char *what);

#endif
