/* `sojourn report --coverage`: how many functions or lines of the program were entered. */
#ifndef SJ_COLLECTOR_SERVER_CLI_REPORT_COVERAGE_H
#define SJ_COLLECTOR_SERVER_CLI_REPORT_COVERAGE_H

#include "collector-server/cli/query_command.h"

typedef struct sj_report_coverage {
    const char *by; /* what to group by (see sj_coverage_is_kind); "" or NULL: module */
    /* a set of sessions; NULL: the session of the query options, by default the newest */
    const char *sessions;
    const char *page; /* path of an HTML file to write; NULL: none */
} sj_report_coverage;

/* Prints the coverage, or writes the HTML page. Returns an exit code, after a message if it is not
 * SJ_EXIT_OK. */
int sj_report_coverage_run(const sj_report_coverage *coverage, const sj_query_options *options);

#endif
