/* Reports the progress of long work to a callback, for example of a progress bar. The working
 * thread calls it between two parts of the work. Without a callback all functions do nothing. */
#ifndef SJ_PROTO_BASE_PROGRESS_H
#define SJ_PROTO_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sj_progress {
    double part;    /* finished fraction, 0 to 1; negative: unknown */
    bool has_ended; /* the work has ended, successfully or not */
} sj_progress;

/* Called at the start and the end of the outermost work, and after each part of any work. Must
 * return quickly. */
typedef void sj_progress_show(const sj_progress *progress);

/* A handle of work in progress. 0 if no callback is set, or if 8 other works contain this one. Only
 * the thread that started the work can use it: on other threads the functions below do nothing. */
typedef uint64_t sj_progress_work;

/* Sets the callback of the calling thread; NULL removes it. Work that started earlier is no longer
 * reported. */
void sj_progress_watch(sj_progress_show *show);

/* True if the calling thread has a callback, so that counting the parts of the work in advance is
 * worthwhile. */
bool sj_progress_is_watched(void);

/* Both functions start work of `total` parts (0: unknown). If other work starts inside work of
 * sj_progress_begin, the progress of both is unknown. Each part of work of sj_progress_begin_list
 * is work itself, and its progress counts as a fraction of the part. */
sj_progress_work sj_progress_begin(uint64_t total);
sj_progress_work sj_progress_begin_list(uint64_t total);

/* sj_progress_step counts one finished part. sj_progress_reach sets the number of finished parts.
 * It may repeat the last number, so that the callback can show the elapsed time. sj_progress_end
 * ends the work. */
void sj_progress_step(sj_progress_work work);
void sj_progress_reach(sj_progress_work work, uint64_t done);
void sj_progress_end(sj_progress_work work);

#endif
