/* How far long work has come, from where it is done to whoever waits for it: of one thread, which
 * does the work and is called back between two parts of it. Nothing happens without a watcher. */
#ifndef SJ_PROTO_BASE_PROGRESS_H
#define SJ_PROTO_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sj_progress {
    uint64_t done;
    uint64_t total; /* parts; 0: not known */
    bool has_ended; /* the work has, however it did */
} sj_progress;

/* Called after each part, and at the end; has to be quick. */
typedef void sj_progress_show(const sj_progress *progress);

/* sj_progress_watch has the calling thread's work shown from now on; NULL: no more. */
void sj_progress_watch(sj_progress_show *show);

/* sj_progress_is_watched: counting the parts beforehand is worth it. */
bool sj_progress_is_watched(void);

/* sj_progress_begin begins work of so many parts (0: not known). Work within work, which has an end
 * of its own, is not counted, and how long the outer takes is not known any more.
 * sj_progress_step counts a part; sj_progress_end ends the work. */
void sj_progress_begin(uint64_t total);
void sj_progress_step(void);
void sj_progress_end(void);

#endif
