/* How far long work has come, from where it is done to whoever waits for it: of one thread, which
 * does the work and is called back between two parts of it. Nothing happens without a watcher. */
#ifndef SJ_PROTO_BASE_PROGRESS_H
#define SJ_PROTO_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sj_progress {
    double part;    /* of the work that is done, up to 1; less than 0: not known */
    bool has_ended; /* the work has, however it did */
} sj_progress;

/* Called at the begin, after each part, and at the end; has to be quick. */
typedef void sj_progress_show(const sj_progress *progress);

/* Work that is watched; 0: it is not. Other threads may end it, which has no effect there. */
typedef uint64_t sj_progress_work;

/* sj_progress_watch has the calling thread's work shown from now on; NULL: no more. Work that has
 * begun before is not counted any more. */
void sj_progress_watch(sj_progress_show *show);

/* sj_progress_is_watched: counting the parts beforehand is worth it. */
bool sj_progress_is_watched(void);

/* sj_progress_begin begins work of so many parts (0: not known). Of work within work, which has an
 * end of its own, neither is known how long it takes.
 * sj_progress_begin_list begins work each part of which is work itself, and is counted. */
sj_progress_work sj_progress_begin(uint64_t total);
sj_progress_work sj_progress_begin_list(uint64_t total);

/* sj_progress_step counts a part; sj_progress_reach says that so many are done, as many as before
 * when only time has passed; sj_progress_end ends the work. */
void sj_progress_step(sj_progress_work work);
void sj_progress_reach(sj_progress_work work, uint64_t done);
void sj_progress_end(sj_progress_work work);

#endif
