#include "collector-server/http/parameters.h"

#include <inttypes.h>
#include <string.h>

bool sj_parse_whole_number(const char *text, int64_t maximum, int64_t *value)
{
    const size_t length = strlen(text);
    if (length == 0 || length > 18 || strspn(text, "0123456789") != length) {
        return false;
    }
    int64_t number = 0;
    for (size_t i = 0; i < length; i++) {
        number = number * 10 + (text[i] - '0');
    }
    *value = number;
    return number <= maximum;
}

static const char *look_up(const sj_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

sj_status sj_parameter_number(const sj_request *request, const char *name, sj_parameter_range range,
                              int64_t *value, sj_error *error)
{
    const char *text = look_up(request, name);
    if (text == NULL) {
        *value = range.when_absent;
        return SJ_OK;
    }
    if (!sj_parse_whole_number(text, range.maximum, value) || *value < range.minimum) {
        return sj_fail(error, SJ_EINVAL,
                       "parameter '%s' must be a whole number from %" PRId64 " to %" PRId64, name,
                       range.minimum, range.maximum);
    }
    return SJ_OK;
}

sj_status sj_parameter_text(const sj_request *request, const char *name, size_t max_bytes,
                            const char **text, sj_error *error)
{
    const char *value = look_up(request, name);
    *text = value != NULL && value[0] != '\0' ? value : NULL;
    if (value != NULL && strlen(value) > max_bytes) {
        return sj_fail(error, SJ_EINVAL, "parameter '%s' is longer than %zu bytes", name,
                       max_bytes);
    }
    return SJ_OK;
}
