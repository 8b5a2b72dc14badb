#include "collector-server/cli/json_output.h"

#include "proto/base/utf8_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sj_json_output(const sj_command *command, json_t *value)
{
    json_t *rows = json_is_array(value) ? json_incref(value) : json_pack("[O]", value);
    json_t *output = json_pack("{si so}", "schema", 1, "rows", rows);
    const bool is_written = output != NULL && json_dumpf(output, stdout, JSON_INDENT(2)) == 0 &&
                            putchar('\n') != EOF && fflush(stdout) == 0;
    json_decref(output);
    json_decref(value);
    return is_written ? SJ_EXIT_OK
                      : sj_command_error(command, SJ_EXIT_FAILED, "cannot write the result");
}

/* Returns a copy of the text in which each byte that is not UTF-8 is U+FFFD. The caller frees it.
 * Returns NULL if out of memory. */
static char *dup_clean(const char *text)
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
    char *cleaned = dup_clean(text);
    json_t *made = cleaned != NULL ? json_string(cleaned) : NULL;
    free(cleaned);
    return made;
}

json_t *sj_json_clean_load(const char *text)
{
    char *cleaned = dup_clean(text);
    json_t *made = cleaned != NULL ? json_loads(cleaned, JSON_DECODE_ANY, NULL) : NULL;
    free(cleaned);
    return made;
}
