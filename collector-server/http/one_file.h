/* Writes a session as one HTML page that opens without a server. The dashboard supplies the page
 * and its SQL statements (web-static/src/one_file.tsx, one_file_questions.ts). */
#ifndef SJ_COLLECTOR_SERVER_HTTP_ONE_FILE_H
#define SJ_COLLECTOR_SERVER_HTTP_ONE_FILE_H

#include "collector-server/export/exporter.h"

/* Exports the overview of a session and the results of the page's statements. The connection
 * must have the tables and functions of query/ (sj_query_register). The exporter is in http/
 * because it needs the dashboard's files. */
extern const sj_exporter sj_exporter_html;

#endif
