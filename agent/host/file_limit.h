/* Writes beyond the limit of a file's size (RLIMIT_FSIZE). */
#ifndef SJ_AGENT_HOST_FILE_LIMIT_H
#define SJ_AGENT_HOST_FILE_LIMIT_H

/* sj_file_limit_ignore has such writes fail with EFBIG, as a full disk has them, instead of ending
 * the process by SIGXFSZ. Call it before threads start; again, it does nothing. */
void sj_file_limit_ignore(void);

/* sj_file_limit_restore gives the process the SIGXFSZ that it began with: for a child that is to
 * execute another program. Async-signal-safe. */
void sj_file_limit_restore(void);

#endif
