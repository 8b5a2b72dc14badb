#include "collector-server/http/web_questions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/queries/web/questions.inc"

const sj_web_question *sj_web_questions(size_t *count)
{
    *count = sizeof(questions) / sizeof(questions[0]);
    return questions;
}

static int compare_name(const void *name, const void *question)
{
    return strcmp(name, ((const sj_web_question *)question)->name);
}

const sj_web_question *sj_web_question_find(const char *name)
{
    return bsearch(name, questions, sizeof(questions) / sizeof(questions[0]), sizeof(questions[0]),
                   compare_name);
}

/* Binds a number. Returns false if the text is not one of the type. */
static bool bind_number(sqlite3_stmt *statement, int number, sj_web_type type, const char *text)
{
    char *end = NULL;
    errno = 0;
    const long long whole = strtoll(text, &end, 10);
    if (strspn(text, "+-.0123456789eE") != strlen(text) || end == text) {
        return false;
    }
    if (*end == '\0' && errno == 0) {
        return sqlite3_bind_int64(statement, number, whole) == SQLITE_OK;
    }
    const double real = strtod(text, &end);
    return type == SJ_WEB_REAL && *end == '\0' &&
           sqlite3_bind_double(statement, number, real) == SQLITE_OK;
}

sj_status sj_web_question_bind(const sj_web_question *question, sqlite3_stmt *statement, int number,
                               const char *text, sj_error *error)
{
    const sj_web_parameter *parameter = &question->parameters[number - 1];
    if (text == NULL) {
        return parameter->is_optional
                   ? SJ_OK
                   : sj_fail(error, SJ_EINVAL, "the question %s needs a value for '%s'",
                             question->name, parameter->name);
    }
    if (parameter->type == SJ_WEB_TEXT) {
        sqlite3_bind_text(statement, number, text, -1, SQLITE_TRANSIENT);
    } else if (!bind_number(statement, number, parameter->type, text)) {
        return sj_fail(error, SJ_EINVAL, "'%s' of the question %s has to be a %snumber",
                       parameter->name, question->name,
                       parameter->type == SJ_WEB_INT ? "whole " : "");
    }
    return SJ_OK;
}
