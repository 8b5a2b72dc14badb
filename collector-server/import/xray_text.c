/* The text of `llvm-xray convert`: a header, then one line a record:
 *
 *   - { type: 0, func-id: 3, function: main, cpu: 0, thread: 12, process: 12,
 *       kind: function-enter, tsc: 1795, data: '' }
 *
 * A name with special characters is in single or double quotes. */
#include "collector-server/import/xray.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 64 * 1024 };

/* Returns what is behind ", KEY: " or "{ KEY: " at or after `at`, or NULL. */
static char *value_at(char *at, const char *key)
{
    char *found = strstr(at, key);
    return found != NULL ? found + strlen(key) : NULL;
}

/* Reads a name up to ", cpu: ", and removes its quotes in place. Returns what follows, or NULL. */
static char *read_name(char *text, sj_slice *name)
{
    char *to = text;
    char *at = text;
    const char quote = *text == '\'' || *text == '"' ? *text++ : '\0';
    if (quote == '\0') {
        at = strstr(text, ", cpu: ");
        *name =
            (sj_slice){.data = (const uint8_t *)text, .size = at != NULL ? (size_t)(at - text) : 0};
        return at;
    }
    for (at = text; *at != '\0' && (*at != quote || (quote == '\'' && at[1] == '\'')); at++) {
        at += *at == quote || (quote == '"' && *at == '\\' && at[1] != '\0') ? 1 : 0;
        *to++ = *at;
    }
    *name = (sj_slice){.data = (const uint8_t *)text - 1, .size = (size_t)(to - (text - 1))};
    return *at == quote ? at + 1 : NULL;
}

static bool read_number(char **at, const char *key, uint64_t *number)
{
    char *value = *at != NULL ? value_at(*at, key) : NULL;
    if (value == NULL || !isdigit((unsigned char)*value)) {
        return false;
    }
    *number = strtoull(value, at, 10);
    return true;
}

static bool read_kind(char **at, sj_xray_kind *kind)
{
    static const struct {
        const char *text;
        sj_xray_kind kind;
    } kinds[] = {{"function-enter-arg,", SJ_XRAY_ENTER_ARGUMENT},
                 {"function-enter,", SJ_XRAY_ENTER},
                 {"function-exit,", SJ_XRAY_EXIT},
                 {"function-tail-exit,", SJ_XRAY_TAIL_EXIT}};
    char *value = *at != NULL ? value_at(*at, ", kind: ") : NULL;
    for (size_t i = 0; value != NULL && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strncmp(value, kinds[i].text, strlen(kinds[i].text)) == 0) {
            *kind = kinds[i].kind;
            *at = value;
            return true;
        }
    }
    return false;
}

static sj_status read_record(sj_xray *xray, char *line)
{
    uint64_t number = 0;
    uint64_t tid = 0;
    uint64_t pid = 0;
    uint64_t cycles = 0;
    sj_slice name = {0};
    sj_xray_kind kind = SJ_XRAY_ENTER;
    uint32_t thread;
    char *at = line;
    if (strstr(line, "kind: custom-event") != NULL || strstr(line, "kind: typed-event") != NULL) {
        return SJ_OK;
    }
    bool is_whole = line[strlen(line) - 1] == '}' && read_number(&at, ", func-id: ", &number);
    at = is_whole ? value_at(at, ", function: ") : NULL;
    at = at != NULL ? read_name(at, &name) : NULL;
    is_whole = at != NULL && read_number(&at, ", thread: ", &tid) &&
               read_number(&at, ", process: ", &pid) && read_kind(&at, &kind) &&
               read_number(&at, ", tsc: ", &cycles);
    if (!is_whole || number > UINT32_MAX || tid > UINT32_MAX || pid > UINT32_MAX) {
        return sj_source_fail(xray->source, SJ_ECORRUPT, xray->at,
                              "this is not a whole record of llvm-xray convert: %.60s", line);
    }
    /* llvm-xray writes the number of a function whose name it does not know. */
    const bool is_number = name.size != 0 && isdigit(name.data[0]);
    SJ_TRY(sj_xray_thread(xray, (int64_t)pid, (int64_t)tid, &thread));
    return sj_xray_add(xray, thread, kind, is_number ? (sj_slice){0} : name, (uint32_t)number,
                       cycles);
}

static sj_status read_frequency(sj_xray *xray, char *line)
{
    char *at = line;
    uint64_t frequency;
    if (read_number(&at, "cycle-frequency: ", &frequency) && frequency != 0) {
        xray->cycles_per_s = frequency;
    }
    return SJ_OK;
}

sj_status sj_xray_read_text(sj_xray *xray)
{
    size_t size;
    bool is_line = true;
    bool has_end = false;
    char *line = malloc(LINE_BYTES);
    sj_status status = line != NULL ? SJ_OK : SJ_ENOMEM;
    while (status == SJ_OK && is_line) {
        xray->at = sj_source_offset(xray->source);
        status = sj_source_line(xray->source, line, LINE_BYTES, &size, &is_line);
        if (status != SJ_OK || !is_line) {
            continue;
        }
        has_end = has_end || strcmp(line, "...") == 0;
        status =
            strncmp(line, "  - {", 5) == 0 ? read_record(xray, line) : read_frequency(xray, line);
    }
    free(line);
    return status == SJ_OK && !has_end
               ? sj_source_fail(xray->source, SJ_ECORRUPT, xray->at,
                                "the file ends without the line \"...\": it is cut")
               : status;
}
