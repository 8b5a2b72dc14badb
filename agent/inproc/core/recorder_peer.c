#include "agent/inproc/core/recorder_peer.h"

#include "agent/inproc/link/environment.h"

bool sj_recorder_peer_meet(char **arguments, char **environment, char *runtime,
                           size_t runtime_bytes)
{
    (void)arguments;
    return sj_environment_consume(environment, runtime, runtime_bytes);
}

void sj_recorder_peer_exec(const char *const **entries)
{
    *entries = NULL;
}

void sj_recorder_peer_part(void)
{
}
