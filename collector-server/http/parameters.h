/* Reads query-string parameters of a request. For an invalid value, the message of the error names
 * the parameter and its allowed values. */
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

/* Parses the parameter `name`, a whole number; `*value` is range.when_absent if the request does
 * not have it. Returns SJ_EINVAL if it is not a number or out of range. */
SJ_MUST_CHECK sj_status sj_parameter_number(const sj_request *request, const char *name,
                                            sj_parameter_range range, int64_t *value,
                                            sj_error *error);

/* Returns the text of the parameter `name`, borrowed from the request. `*text` is NULL if the
 * parameter is absent or empty. Returns SJ_EINVAL if the text is longer than `max_bytes`. */
SJ_MUST_CHECK sj_status sj_parameter_text(const sj_request *request, const char *name,
                                          size_t max_bytes, const char **text, sj_error *error);

#endif
