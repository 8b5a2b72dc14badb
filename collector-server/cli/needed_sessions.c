#include "collector-server/cli/needed_sessions.h"

#include "proto/base/units.h"

#include <stdio.h>

enum { DECIDES_MOST = 10 };

size_t sj_needed_sessions_advice(size_t needed)
{
    return needed > DECIDES_MOST ? needed : DECIDES_MOST;
}

const char *sj_needed_sessions_text(size_t few, size_t needed, size_t functions,
                                    char text[SJ_NEEDED_SESSIONS_BYTES])
{
    const size_t advice = sj_needed_sessions_advice(needed);
    const int length = snprintf(text, SJ_NEEDED_SESSIONS_BYTES, "%s a side cannot decide %s; ",
                                SJ_COUNTED(few, "session"), SJ_COUNTED(functions, "function"));
    if (few < advice) {
        snprintf(text + length, SJ_NEEDED_SESSIONS_BYTES - (size_t)length, "record %zu", advice);
    } else {
        snprintf(text + length, SJ_NEEDED_SESSIONS_BYTES - (size_t)length,
                 "record more, on a quieter machine");
    }
    return text;
}
