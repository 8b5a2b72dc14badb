/* Query-string parameters of a request. Unknown ones are ignored; a wrong value is an error that
 * names the parameter and what it may be. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_PARAMETERS_H
#define SJ_COLLECTOR_SERVER_HTTP_PARAMETERS_H

#include "collector-server/http/route.h"

typedef struct sj_parameter_range {
    int64_t minimum;
    int64_t maximum;
    int64_t when_absent;
} sj_parameter_range;

/* sj_parse_whole_number reads an unsigned decimal number that fills the whole text and is at most
 * `maximum`. */
bool sj_parse_whole_number(const char *text, int64_t maximum, int64_t *value);

/* sj_parameter_number reads a whole number; SJ_EINVAL when it is no number or out of range. */
SJ_MUST_CHECK sj_status sj_parameter_number(const sj_request *request, const char *name,
                                            sj_parameter_range range, int64_t *value,
                                            sj_error *error);

/* sj_parameter_text borrows a text of at most `max_bytes`; NULL when absent or empty. */
SJ_MUST_CHECK sj_status sj_parameter_text(const sj_request *request, const char *name,
                                          size_t max_bytes, const char **text, sj_error *error);

#endif
