/* How far imports are that are being copied, for those who wait for their end. Any thread. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_IMPORT_PROGRESS_H
#define SJ_COLLECTOR_SERVER_HTTP_IMPORT_PROGRESS_H

/* sj_import_progress_watch shows the calling thread's work (proto/base/progress.h) as that of an
 * import until sj_import_progress_leave, in the same thread. Of more imports than are copied at
 * once nothing is shown. */
void sj_import_progress_watch(const char *import);
void sj_import_progress_leave(void);

/* sj_import_progress_of returns which part of an import is copied, 0 to 1; less than 0: it is not
 * being copied. */
double sj_import_progress_of(const char *import);

#endif
