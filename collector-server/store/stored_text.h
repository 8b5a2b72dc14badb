/* Stores texts of devices as UTF-8, so that each reader can show and compare them. */
#ifndef SJ_COLLECTOR_SERVER_STORE_STORED_TEXT_H
#define SJ_COLLECTOR_SERVER_STORE_STORED_TEXT_H

#include <sqlite3.h>
#include <stddef.h>

/* Binds `size` bytes of text to parameter `place`, from 1, of a statement. Each byte that is not
 * UTF-8 becomes \xNN; NULL stays NULL. The statement borrows the text until it was run. Returns an
 * SQLite result code. Call it on the statement's thread. Does not block. */
int sj_stored_text_bind(sqlite3_stmt *statement, int place, const char *text, size_t size);

#endif
