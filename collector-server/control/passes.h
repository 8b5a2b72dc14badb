/* Passes: who may speak at present, in memory, so that each frame of each connection can be judged.
 *
 * A pass is the number of the event by which a device was let in (table `token_events`); it is
 * valid until the device is thrown out or enrols again. Any thread; sj_passes_renew one at a time.
 */
#ifndef SJ_COLLECTOR_CONTROL_PASSES_H
#define SJ_COLLECTOR_CONTROL_PASSES_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sj_passes sj_passes;

/* sj_passes_new begins with none. NULL: out of memory. */
sj_passes *sj_passes_new(void);
void sj_passes_free(sj_passes *passes);

/* sj_passes_renew reads the events that came since; true when there were any. */
bool sj_passes_renew(sj_passes *passes, sqlite3 *database);

/* sj_passes_has tells whether a pass is valid. */
bool sj_passes_has(sj_passes *passes, int64_t pass);

/* sj_passes_of_device returns the pass of a device, or 0; sj_passes_has_device whether there is
 * one.
 */
int64_t sj_passes_of_device(sj_passes *passes, int64_t device_id);
bool sj_passes_has_device(sj_passes *passes, int64_t device_id);

#endif
