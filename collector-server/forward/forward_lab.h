/* Shared by all code that forwards: the identity of this lab, and versions of rows. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_FORWARD_LAB_H
#define SJ_COLLECTOR_SERVER_FORWARD_FORWARD_LAB_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdint.h>

enum { SJ_LAB_ID_BYTES = 16 };

/* Gives the lab an id, unless it has one. Returns an error of the database. */
SJ_MUST_CHECK sj_status sj_forward_lab_make(sqlite3 *writer, sj_error *error);

/* Reads the lab's id. Returns SJ_ECORRUPT if it does not have one. */
SJ_MUST_CHECK sj_status sj_forward_lab_read(sqlite3 *reader, uint8_t lab[SJ_LAB_ID_BYTES],
                                            sj_error *error);

/* Returns a version that is greater than `version`: normally the current time in ns since 1970. If
 * the clock was set back, returns `version` plus a random step. Otherwise the rows of a failed
 * attempt could get the version of the next attempt and be seen with its rows. */
uint64_t sj_forward_newer_than(uint64_t version);

/* Returns the day since 1970; 0 for times outside of the range. */
uint16_t sj_forward_day(int64_t realtime_ns);

#endif
