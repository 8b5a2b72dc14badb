#include "agent/inproc/core/gates.h"

#include "agent/abi/agent_state.h"
#include "agent/inproc/core/modules.h"
#include "agent/inproc/hooks/arch.h"

#include <string.h>

sj_status sj_gate_put(uint64_t address, void (*gate)(void), uint64_t *resume,
                      sj_hooked_module *hook)
{
    uint8_t original[SJ_PATCH_MAX_BYTES];
    const uint64_t to = (uint64_t)(uintptr_t)gate;
    *resume = address + SJ_RETURN_PATCH_BYTES;
    memcpy(original, (const void *)(uintptr_t)address, SJ_RETURN_PATCH_BYTES);
    return sojourn_agent_state.prepare_only != 0
               ? sj_modules_redirect(address, original, SJ_RETURN_PATCH_BYTES, 0, to)
               : sj_hooks_redirect(address, original, SJ_RETURN_PATCH_BYTES, to, false, hook);
}
