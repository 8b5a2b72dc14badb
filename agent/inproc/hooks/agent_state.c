#include "agent/abi/agent_state.h"

#include "agent/inproc/hooks/stub_areas.h"

__attribute__((visibility("default")))
sj_agent_state sojourn_agent_state = {.magic = SJ_AGENT_STATE_MAGIC,
                                      .version = SJ_AGENT_STATE_VERSION,
                                      .stub_ranges = (uint64_t)(uintptr_t)&sj_stub_areas};
