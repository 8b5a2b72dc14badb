/* Handles writes beyond the limit of a file's size (RLIMIT_FSIZE). */
#ifndef SJ_AGENT_HOST_FILE_LIMIT_H
#define SJ_AGENT_HOST_FILE_LIMIT_H

/* Makes writes beyond the limit fail with EFBIG, as on a full disk, instead of ending the process
 * by SIGXFSZ. Call it before threads start; a second call does nothing. */
void sj_file_limit_ignore(void);

/* Restores the action of SIGXFSZ that the process started with, for a child that will execute
 * another program. Does nothing before sj_file_limit_ignore. Async-signal-safe. */
void sj_file_limit_restore(void);

#endif
