#include "agent/include/sojourn.h"
#include "agent/inproc/recorder/recorder.h"

#define SJ_EXPORTED __attribute__((visibility("default")))

SJ_EXPORTED void sojourn_agent_mark_begin(const char *name)
{
    sj_recorder_mark(name, false);
}

SJ_EXPORTED void sojourn_agent_mark_end(const char *name)
{
    sj_recorder_mark(name, true);
}

SJ_EXPORTED void sojourn_agent_request(int request)
{
    if (request >= SJ_REQUEST_START && request <= SJ_REQUEST_VSYNC) {
        sj_recorder_request((sj_request)request);
    }
}
