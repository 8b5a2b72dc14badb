/* Keeps SQLite from writing a log into a file that the log does not belong to. If a database is
 * overwritten, the log of the former file stays beside it, and SQLite would mix the two. Both
 * a running and a killed collector leave such a log. */
#ifndef SJ_COLLECTOR_SERVER_STORE_FOREIGN_LOG_H
#define SJ_COLLECTOR_SERVER_STORE_FOREIGN_LOG_H

#include "collector-server/store/file_watch.h"

/* Suffix of the note, a file beside the database. The note says which state of the database a log
 * began with. */
#define SJ_LOG_BASE_END "-base"

/* True if the log beside `path` belongs to another file. False if there is no log, or the log
 * belongs to the file. Also false if that cannot be found out, or a process has the database open.
 * Reads the whole log. Thread-safe. Blocks. */
bool sj_foreign_log_exists(const char *path);

/* Renames a log that belongs to another file to NAME-wal.foreign, or NAME-wal.foreign-2 and so on.
 * Logs a line with both names. Returns SJ_EIO if it cannot be renamed. Does nothing if
 * sj_foreign_log_exists is false. Call it before SQLite opens the file. Thread-safe. Blocks. */
SJ_MUST_CHECK sj_status sj_foreign_log_set_aside(const char *path, sj_error *error);

/* Returns SJ_ECORRUPT if the log belongs to another file; the error says what to do. Readers call
 * it, because it changes no file. Thread-safe. Blocks. */
SJ_MUST_CHECK sj_status sj_foreign_log_check(const char *path, sj_error *error);

/* Writes the note, which says which state of the file the current log began with. `noted` are the
 * salts of the log that was noted last, and are updated. Does nothing if the current log has the
 * same salts, or a checkpoint has already changed the file. Does not overwrite another file that
 * has the note's name. `file_name` has no symbolic links. Ignores errors: without the note, fewer
 * foreign logs are found. Blocks. */
void sj_log_base_note(const char *file_name, const sj_file_watch *watch, uint32_t noted[2]);

/* Deletes the note if the database has no log. Call it after the database is closed. */
void sj_log_base_remove(const char *path);

#endif
