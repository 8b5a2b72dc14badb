/* Texts of devices, as they are stored: UTF-8, so that each reader can show and compare them. */
#ifndef SJ_COLLECTOR_SERVER_STORE_STORED_TEXT_H
#define SJ_COLLECTOR_SERVER_STORE_STORED_TEXT_H

#include <sqlite3.h>
#include <stddef.h>

/* sj_stored_text_bind binds `size` bytes of text to a place (from 1) of a statement, with \xNN for
 * each byte that is not UTF-8; NULL stays NULL. The text is borrowed until the statement was run.
 * Returns a result code of SQLite. The thread of the statement; does not block. */
int sj_stored_text_bind(sqlite3_stmt *statement, int place, const char *text, size_t size);

#endif
