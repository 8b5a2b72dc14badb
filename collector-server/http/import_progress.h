/* The progress of imports that are being copied. Thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_IMPORT_PROGRESS_H
#define SJ_COLLECTOR_SERVER_HTTP_IMPORT_PROGRESS_H

/* Makes the calling thread's progress (proto/base/progress.h) the import's progress, until
 * sj_import_progress_leave on the same thread. Does nothing if too many imports are copied at
 * once. */
void sj_import_progress_watch(const char *import);
void sj_import_progress_leave(void);

/* Returns the copied part of an import, 0 to 1, or less than 0 if it is not being copied. */
double sj_import_progress_of(const char *import);

#endif
