/* What the files of the fleet's part of the database share. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_FLEET_INTERNAL_H
#define SJ_COLLECTOR_SERVER_FLEET_FLEET_INTERNAL_H

#include "collector-server/fleet/fleet.h"

struct sj_fleet {
    sqlite3 *database;
};

/* True for a session that has come to its end: its device said how many blocks it sent, and each is
 * stored, or known to be missing for good. */
#define SJ_SESSION_HAS_COME                                                                        \
    "(state <> 'recording' AND sent_blocks IS NOT NULL AND"                                        \
    " stored_blocks + missing_blocks >= sent_blocks)"

/* sj_fleet_now_ns returns CLOCK_REALTIME. */
int64_t sj_fleet_now_ns(void);

/* sj_fleet_failed reports SQLite's last error. */
sj_status sj_fleet_failed(const sj_fleet *fleet, sj_error *error);

/* sj_fleet_prepare compiles a statement; the next two finalise it. */
SJ_MUST_CHECK sj_status sj_fleet_prepare(const sj_fleet *fleet, const char *sql,
                                         sqlite3_stmt **statement, sj_error *error);

/* sj_fleet_finish_statement runs a statement that returns no row of interest. */
SJ_MUST_CHECK sj_status sj_fleet_finish_statement(const sj_fleet *fleet, sqlite3_stmt *statement,
                                                  sj_error *error);

/* sj_fleet_take_number runs a statement and takes the first column of its first row.
 * SJ_ENOTFOUND: there was none. */
SJ_MUST_CHECK sj_status sj_fleet_take_number(const sj_fleet *fleet, sqlite3_stmt *statement,
                                             int64_t *number, sj_error *error);

/* sj_fleet_begin opens a transaction; sj_fleet_end commits it when `status` is SJ_OK, else takes
 * it back, and returns what came of it. */
SJ_MUST_CHECK sj_status sj_fleet_begin(const sj_fleet *fleet, sj_error *error);
SJ_MUST_CHECK sj_status sj_fleet_end(const sj_fleet *fleet, sj_status status, sj_error *error);

/* sj_fleet_bind_text binds a borrowed text that is valid until the statement was run. */
void sj_fleet_bind_text(sqlite3_stmt *statement, int place, const char *text);

#endif
