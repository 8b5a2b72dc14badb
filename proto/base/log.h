/* The log of the servers and daemons: one line an event on standard error, in logfmt:
 *
 *   time=2026-11-20T14:00:01.250Z level=info program=sojournd event=listening message="at
 * tcp://..."
 *
 * Values with blanks, quotes or control characters are quoted and escaped, so that nothing that
 * came from outside can make a line of its own. Secrets are never given to it. */
#ifndef SJ_PROTO_BASE_LOG_H
#define SJ_PROTO_BASE_LOG_H

typedef enum sj_log_level {
    SJ_LOG_INFO = 0, /* what is to be expected */
    SJ_LOG_WARN = 1, /* it goes on, but somebody should look */
    SJ_LOG_ERROR = 2 /* something was not done */
} sj_log_level;

enum { SJ_LOG_LINE_BYTES = 2048 };

/* sj_log_open names the program in every line from then on; borrowed for ever. Before any thread is
 * started. */
void sj_log_open(const char *program);

/* sj_log writes one line; longer ones are cut. `event` is one word of ours. Any thread; blocking
 * only as standard error is; errno is kept. */
__attribute__((format(printf, 3, 4))) void sj_log(sj_log_level level, const char *event,
                                                  const char *format, ...);

#endif
