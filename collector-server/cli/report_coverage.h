/* `sojourn report --coverage`: the functions of the program that were entered. */
#ifndef SJ_COLLECTOR_SERVER_CLI_REPORT_COVERAGE_H
#define SJ_COLLECTOR_SERVER_CLI_REPORT_COVERAGE_H

#include "collector-server/cli/query_command.h"

typedef struct sj_report_coverage {
    const char *by; /* what the functions are grouped by; "" or NULL: module */
    /* a set of sessions; NULL: the session of the options, else the last one */
    const char *sessions;
    const char *page; /* path of an HTML file to write; NULL: none */
} sj_report_coverage;

/* Prints the coverage, or writes the HTML page. Returns an exit code. */
int sj_report_coverage_run(const sj_report_coverage *coverage, const sj_query_options *options);

#endif
