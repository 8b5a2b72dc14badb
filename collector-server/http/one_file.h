/* A session as one HTML page that opens without a server: the page and the questions that it
 * answers are the dashboard's (web-static/src/one_file.tsx, one_file_questions.ts). */
#ifndef SJ_COLLECTOR_SERVER_HTTP_ONE_FILE_H
#define SJ_COLLECTOR_SERVER_HTTP_ONE_FILE_H

#include "collector-server/export/exporter.h"

/* An exporter of a connection that has the tables and functions of query/; all calls of the
 * session. It stands here and not with the others because it needs the dashboard's files. */
extern const sj_exporter sj_exporter_html;

#endif
