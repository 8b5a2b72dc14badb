/* The questions of the dashboard (schema/queries/web), compiled in. Each is an SQL statement with
 * typed parameters. The functions are thread-safe and do not block. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_WEB_QUESTIONS_H
#define SJ_COLLECTOR_SERVER_HTTP_WEB_QUESTIONS_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

enum { SJ_WEB_PARAMETERS = 12 };

typedef enum sj_web_type {
    SJ_WEB_INT,  /* a whole number */
    SJ_WEB_REAL, /* a number */
    SJ_WEB_TEXT
} sj_web_type;

typedef struct sj_web_parameter {
    const char *name;
    sj_web_type type;
    bool is_optional; /* NULL without a value */
} sj_web_parameter;

typedef struct sj_web_question {
    const char *name; /* begins with "web." */
    const char *sql;
    sj_web_parameter parameters[SJ_WEB_PARAMETERS];
    size_t parameter_count;
    const char *columns; /* their names, separated by commas */
    bool has_more_columns;
    bool is_of_cluster; /* written in a cluster's SQL */
} sj_web_question;

/* Returns all questions, sorted by name, and writes their number to `count`. The array is constant.
 */
const sj_web_question *sj_web_questions(size_t *count);

/* Returns NULL if no question has the name. */
const sj_web_question *sj_web_question_find(const char *name);

/* Binds `text` to parameter `number` of the prepared statement of a question; `text` NULL: no
 * value. Returns SJ_EINVAL if the text does not have the parameter's type, or if the parameter
 * needs a value. */
SJ_MUST_CHECK sj_status sj_web_question_bind(const sj_web_question *question,
                                             sqlite3_stmt *statement, int number, const char *text,
                                             sj_error *error);

#endif
