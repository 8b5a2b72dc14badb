/* Results of walks over blocks, beside SQLite's result codes. SQLITE_CORRUPT stays what SQLite says
 * about the file. No virtual table returns these codes to SQLite. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SCAN_CODES_H
#define SJ_COLLECTOR_SERVER_QUERY_SCAN_CODES_H

enum {
    SJ_SCAN_CONTRADICTION = -1, /* the block's events contradict each other; a warning names it */
    SJ_SCAN_NO_CLOCK = -2       /* the session's clock is invalid */
};

#endif
