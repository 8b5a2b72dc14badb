/* What all that forwards has in common: which lab this is, and versions of rows. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_FORWARD_LAB_H
#define SJ_COLLECTOR_SERVER_FORWARD_FORWARD_LAB_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdint.h>

enum { SJ_LAB_ID_BYTES = 16 };

/* sj_forward_lab_make gives the lab an id, once. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_forward_lab_make(sqlite3 *writer, sj_error *error);

/* sj_forward_lab_read reads it. SJ_ECORRUPT: there is none. */
SJ_MUST_CHECK sj_status sj_forward_lab_read(sqlite3 *reader, uint8_t lab[SJ_LAB_ID_BYTES],
                                            sj_error *error);

/* sj_forward_newer_than is now in ns since 1970, and greater than `version`: a clock that was set
 * back makes no version that was there. Then it is another one each time: rows of a try that failed
 * would be seen with those of the next that had its version. */
uint64_t sj_forward_newer_than(uint64_t version);

/* sj_forward_day is the day since 1970; 0 for times that make no sense. */
uint16_t sj_forward_day(int64_t realtime_ns);

#endif
