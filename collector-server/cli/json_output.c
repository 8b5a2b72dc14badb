#include "collector-server/cli/json_output.h"

#include "collector-server/export/utf8_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sj_json_output(const sj_command *command, json_t *value)
{
    const bool is_written = value != NULL &&
                            json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY) == 0 &&
                            putchar('\n') != EOF && fflush(stdout) == 0;
    json_decref(value);
    return is_written ? SJ_EXIT_OK
                      : sj_command_error(command, SJ_EXIT_FAILED, "cannot write the result");
}

/* NULL: no memory. From malloc. */
static char *clean(const char *text)
{
    enum { REPLACEMENT_BYTES = 3 };
    char *made = malloc(REPLACEMENT_BYTES * strlen(text) + 1);
    if (made != NULL) {
        made[sj_utf8_clean(text, made)] = '\0';
    }
    return made;
}

json_t *sj_json_clean_string(const char *text)
{
    char *cleaned = clean(text);
    json_t *made = cleaned != NULL ? json_string(cleaned) : NULL;
    free(cleaned);
    return made;
}

json_t *sj_json_clean_load(const char *text)
{
    char *cleaned = clean(text);
    json_t *made = cleaned != NULL ? json_loads(cleaned, JSON_DECODE_ANY, NULL) : NULL;
    free(cleaned);
    return made;
}
