/* How much of each running import has been copied. `import` is the import's name. Thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_IMPORT_PROGRESS_H
#define SJ_COLLECTOR_SERVER_HTTP_IMPORT_PROGRESS_H

/* From now on, the progress of the calling thread's work (proto/base/progress.h) is the progress of
 * the import, until the thread calls sj_import_progress_leave. If too many imports are copied at
 * once, the progress of this one is unknown. */
void sj_import_progress_watch(const char *import);
void sj_import_progress_leave(void);

/* Returns the copied part of an import, 0 to 1. Returns less than 0 if the import is not being
 * copied or its progress is unknown. */
double sj_import_progress_of(const char *import);

#endif
