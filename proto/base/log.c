#include "proto/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *log_program = "sojourn";

void sj_log_open(const char *program)
{
    log_program = program;
}

/* Writes a text as a quoted value and returns its length. Leaves space for the closing quote and
 * the newline. */
static size_t quote(const char *text, char *output, size_t capacity)
{
    static const char digits[] = "0123456789abcdef";
    size_t used = 0;
    output[used++] = '"';
    for (; *text != '\0' && used + 8 < capacity; text++) {
        const unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\') {
            output[used++] = '\\';
            output[used++] = (char)byte;
        } else if (byte < 0x20 || byte == 0x7f) {
            output[used++] = '\\';
            output[used++] = 'x';
            output[used++] = digits[byte >> 4];
            output[used++] = digits[byte & 15];
        } else {
            output[used++] = (char)byte;
        }
    }
    output[used++] = '"';
    return used;
}

static size_t write_head(sj_log_level level, const char *event, char *line, size_t capacity)
{
    static const char *const levels[] = {"info", "warn", "error"};
    struct timespec now;
    struct tm utc;
    char moment[32] = "";
    clock_gettime(CLOCK_REALTIME, &now);
    if (gmtime_r(&now.tv_sec, &utc) != NULL) {
        strftime(moment, sizeof(moment), "%Y-%m-%dT%H:%M:%S", &utc);
    }
    const int written =
        snprintf(line, capacity, "time=%s.%03ldZ level=%s program=%s event=%.40s message=", moment,
                 now.tv_nsec / 1000000, levels[level], log_program, event);
    return written > 0 ? (size_t)written : 0;
}

void sj_log(sj_log_level level, const char *event, const char *format, ...)
{
    const int kept_errno = errno;
    char message[SJ_LOG_LINE_BYTES / 2];
    char line[SJ_LOG_LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    size_t used = write_head(level, event, line, sizeof(line) / 4);
    used += quote(message, line + used, sizeof(line) - used - 1);
    line[used++] = '\n';
    /* One write call, so that lines of several threads do not mix. */
    (void)!write(STDERR_FILENO, line, used);
    errno = kept_errno;
}
