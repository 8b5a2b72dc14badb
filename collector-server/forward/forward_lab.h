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

/* Returns a version for rows that is greater than `version`: the current time in ns since 1970. If
 * that is not greater, because the clock was set back, returns `version` plus a random step. With a
 * fixed step, two attempts could get the same version. Then rows of an attempt that failed would be
 * seen among the rows of the next attempt. */
uint64_t sj_forward_newer_than(uint64_t version);

/* Returns the number of days since 1970-01-01; 0 if it does not fit into 16 bits. */
uint16_t sj_forward_day(int64_t realtime_ns);

#endif
