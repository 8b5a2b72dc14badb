/* The log of servers and daemons: one line per event on standard error, in logfmt:
 *
 *   time=2026-11-20T14:00:01.250Z level=info program=sojournd event=listening message="..."
 *
 * The message is quoted and escaped, so that bytes from outside cannot start a line of their own.
 * Callers never log secrets. */
#ifndef SJ_PROTO_BASE_LOG_H
#define SJ_PROTO_BASE_LOG_H

typedef enum sj_log_level {
    SJ_LOG_INFO = 0, /* normal operation */
    SJ_LOG_WARN = 1, /* the program continues, but an operator should look */
    SJ_LOG_ERROR = 2 /* something was not done */
} sj_log_level;

enum { SJ_LOG_LINE_BYTES = 2048 };

/* Sets the program name of all lines from now on. `program` is borrowed for ever. Call it before
 * any thread starts. */
void sj_log_open(const char *program);

/* Writes one line. Cuts the message to less than SJ_LOG_LINE_BYTES / 2 bytes, and the line to
 * SJ_LOG_LINE_BYTES. `event` is one word of at most 40 characters. Thread-safe. Blocks only if
 * standard error blocks. Preserves errno. */
__attribute__((format(printf, 3, 4))) void sj_log(sj_log_level level, const char *event,
                                                  const char *format, ...);

#endif
