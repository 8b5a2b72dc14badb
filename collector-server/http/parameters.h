/* Query-string parameters of a request. Unknown parameters are ignored. A wrong value is an error
 * that names the parameter and its allowed values. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_PARAMETERS_H
#define SJ_COLLECTOR_SERVER_HTTP_PARAMETERS_H

#include "collector-server/http/route.h"

typedef struct sj_parameter_range {
    int64_t minimum;
    int64_t maximum;
    int64_t when_absent;
} sj_parameter_range;

/* Parses an unsigned decimal number of at most 18 digits. Returns false if the text contains
 * anything else, or the number is greater than `maximum`. */
bool sj_parse_whole_number(const char *text, int64_t maximum, int64_t *value);

/* Parses a whole number. Returns SJ_EINVAL if it is not a number or out of range. */
SJ_MUST_CHECK sj_status sj_parameter_number(const sj_request *request, const char *name,
                                            sj_parameter_range range, int64_t *value,
                                            sj_error *error);

/* Borrows a text of at most `max_bytes`. `*text` is NULL if the parameter is absent or empty. */
SJ_MUST_CHECK sj_status sj_parameter_text(const sj_request *request, const char *name,
                                          size_t max_bytes, const char **text, sj_error *error);

#endif
