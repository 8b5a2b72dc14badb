#include "proto/base/error.h"

#include <stdarg.h>
#include <stdio.h>

sj_status sj_fail(sj_error *error, sj_status status, const char *format, ...)
{
    if (error != NULL) {
        va_list arguments;
        va_start(arguments, format);
        error->status = status;
        vsnprintf(error->text, sizeof(error->text), format, arguments);
        va_end(arguments);
    }
    return status;
}
