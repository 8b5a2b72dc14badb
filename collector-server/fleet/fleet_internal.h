/* Shared by the files that use the fleet's tables. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_FLEET_INTERNAL_H
#define SJ_COLLECTOR_SERVER_FLEET_FLEET_INTERNAL_H

#include "collector-server/fleet/fleet.h"

struct sj_fleet {
    sqlite3 *database;
};

/* Returns CLOCK_REALTIME in ns. */
int64_t sj_fleet_now_ns(void);

/* Writes SQLite's last error to `error`, and returns its status. */
sj_status sj_fleet_failed(const sj_fleet *fleet, sj_error *error);

/* Compiles a statement. The caller passes it to one of the next two functions; they finalise it.
 * Returns an error of the database (sj_database_status). */
SJ_MUST_CHECK sj_status sj_fleet_prepare(const sj_fleet *fleet, const char *sql,
                                         sqlite3_stmt **statement, sj_error *error);

/* Runs a statement and ignores its rows. Returns an error of the database (sj_database_status). */
SJ_MUST_CHECK sj_status sj_fleet_finish_statement(const sj_fleet *fleet, sqlite3_stmt *statement,
                                                  sj_error *error);

/* Runs a statement and returns the first column of its first row. Returns SJ_ENOTFOUND if the
 * statement has no row. */
SJ_MUST_CHECK sj_status sj_fleet_read_number(const sj_fleet *fleet, sqlite3_stmt *statement,
                                             int64_t *number, sj_error *error);

/* sj_fleet_begin opens a transaction. sj_fleet_end commits it if `status` is SJ_OK, and rolls it
 * back otherwise. It returns `status`, or the error of the commit. */
SJ_MUST_CHECK sj_status sj_fleet_begin(const sj_fleet *fleet, sj_error *error);
SJ_MUST_CHECK sj_status sj_fleet_end(const sj_fleet *fleet, sj_status status, sj_error *error);

/* Binds a borrowed text. The text must stay valid until the statement has run. */
void sj_fleet_bind_text(sqlite3_stmt *statement, int place, const char *text);

#endif
