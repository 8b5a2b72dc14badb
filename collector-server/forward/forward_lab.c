#include "collector-server/forward/forward_lab.h"

#include "collector-server/store/database.h"

#include <string.h>
#include <time.h>

enum { NS_A_S = 1000000000, S_A_DAY = 86400 };

#define RANDOM_MASK ((UINT64_C(1) << 40) - 1)

sj_status sj_forward_lab_make(sqlite3 *writer, sj_error *error)
{
    static const char sql[] =
        "INSERT INTO lab SELECT randomblob(16) WHERE NOT EXISTS (SELECT 1 FROM lab)";
    return sqlite3_exec(writer, sql, NULL, NULL, NULL) == SQLITE_OK
               ? SJ_OK
               : sj_fail(error, sj_database_status(sqlite3_errcode(writer)), "forwarding: %s",
                         sqlite3_errmsg(writer));
}

sj_status sj_forward_lab_read(sqlite3 *reader, uint8_t lab[SJ_LAB_ID_BYTES], sj_error *error)
{
    sqlite3_stmt *row = NULL;
    bool is_read = false;
    if (sqlite3_prepare_v2(reader, "SELECT uuid FROM lab", -1, &row, NULL) == SQLITE_OK &&
        sqlite3_step(row) == SQLITE_ROW && sqlite3_column_bytes(row, 0) == SJ_LAB_ID_BYTES) {
        memcpy(lab, sqlite3_column_blob(row, 0), SJ_LAB_ID_BYTES);
        is_read = true;
    }
    sqlite3_finalize(row);
    return is_read ? SJ_OK
                   : sj_fail(error, SJ_ECORRUPT, "the database does not say which lab it is");
}

uint64_t sj_forward_newer_than(uint64_t version)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t ns = (uint64_t)now.tv_sec * NS_A_S + (uint64_t)now.tv_nsec;
    if (ns > version) {
        return ns;
    }
    uint64_t random = 0;
    sqlite3_randomness(sizeof(random), &random);
    return version + 1 + (random & RANDOM_MASK);
}

uint16_t sj_forward_day(int64_t realtime_ns)
{
    const int64_t days = realtime_ns / NS_A_S / S_A_DAY;
    return days < 0 || days > UINT16_MAX ? 0 : (uint16_t)days;
}
