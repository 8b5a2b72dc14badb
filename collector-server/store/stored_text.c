#include "collector-server/store/stored_text.h"

#include "proto/base/utf8_text.h"

int sj_stored_text_bind(sqlite3_stmt *statement, int place, const char *text, size_t size)
{
    const size_t stored_bytes = text != NULL ? sj_utf8_escape(text, size, NULL) : size;
    if (stored_bytes == size) {
        return sqlite3_bind_text64(statement, place, text, size, SQLITE_STATIC, SQLITE_UTF8);
    }
    char *escaped = sqlite3_malloc64(stored_bytes);
    if (escaped == NULL) {
        return SQLITE_NOMEM;
    }
    (void)sj_utf8_escape(text, size, escaped);
    return sqlite3_bind_text64(statement, place, escaped, stored_bytes, sqlite3_free, SQLITE_UTF8);
}
