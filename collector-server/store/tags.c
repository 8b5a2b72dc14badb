#include "collector-server/store/tags.h"

#include "proto/base/utf8_text.h"

#include <sqlite3.h>
#include <string.h>

static void append_characters(sqlite3_str *json, const char *text, size_t length)
{
    for (size_t i = 0; i < length; ++i) {
        const unsigned char byte = (unsigned char)text[i];
        if (byte == '"' || byte == '\\') {
            sqlite3_str_appendf(json, "\\%c", byte);
        } else if (byte < 0x20) {
            sqlite3_str_appendf(json, "\\u%04x", byte);
        } else {
            sqlite3_str_appendchar(json, 1, text[i]);
        }
    }
}

/* Escapes the text as all stored texts, and then as JSON. */
static void append_json_text(sqlite3_str *json, const char *text, size_t length)
{
    const size_t escaped_bytes = sj_utf8_escape(text, length, NULL);
    char *escaped = escaped_bytes != length ? sqlite3_malloc64(escaped_bytes) : NULL;
    sqlite3_str_appendchar(json, 1, '"');
    if (escaped != NULL) {
        (void)sj_utf8_escape(text, length, escaped);
        append_characters(json, escaped, escaped_bytes);
    } else if (escaped_bytes == length) {
        append_characters(json, text, length);
    }
    sqlite3_str_appendchar(json, 1, '"');
    sqlite3_free(escaped);
}

char *sj_tags_json(char **tags, size_t count)
{
    sqlite3_str *json = sqlite3_str_new(NULL);
    sqlite3_str_appendchar(json, 1, '{');
    for (size_t i = 0; i < count; ++i) {
        const char *equals = strchr(tags[i], '=');
        const size_t key = equals != NULL ? (size_t)(equals - tags[i]) : strlen(tags[i]);
        const char *value = equals != NULL ? equals + 1 : "";
        if (i > 0) {
            sqlite3_str_appendchar(json, 1, ',');
        }
        append_json_text(json, tags[i], key);
        sqlite3_str_appendchar(json, 1, ':');
        append_json_text(json, value, strlen(value));
    }
    sqlite3_str_appendchar(json, 1, '}');
    return sqlite3_str_finish(json);
}
