/* Results of block scans, in addition to SQLite's result codes. Virtual tables must not return
 * these codes to SQLite. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SCAN_CODES_H
#define SJ_COLLECTOR_SERVER_QUERY_SCAN_CODES_H

enum {
    SJ_SCAN_CONTRADICTION = -1, /* the block's events contradict each other */
    SJ_SCAN_NO_CLOCK = -2       /* the session's clock is invalid */
};

#endif
