#include "agent/abi/skip_text.h"

#include <stddef.h>

const char *sj_skip_text(uint32_t skip)
{
    static const char *const texts[] = {
        [SJ_SKIP_NONE] = "",
        [SJ_SKIP_FILTERED] = "not selected by the policy",
        [SJ_SKIP_TOO_SHORT] = "its entry is too short for a jump",
        [SJ_SKIP_HEAD_IS_TARGET] = "a branch lands inside its entry",
        [SJ_SKIP_HEAD_CALL] = "a call in its entry cannot be moved",
        [SJ_SKIP_HEAD_LOOP] = "it jumps back to its own entry",
        [SJ_SKIP_TAIL_IS_TARGET] = "a branch lands on an exit that is too short for a jump",
        [SJ_SKIP_TAIL_BLOCKED] = "the code before an exit cannot be moved",
        [SJ_SKIP_UNRESOLVED_JUMP] = "an indirect jump with unknown targets",
        [SJ_SKIP_UNDECODABLE] = "bytes that are not instructions",
        [SJ_SKIP_NO_CFI] = "no exact unwind information",
        [SJ_SKIP_RUNTIME_SUPPORT] = "start-up or linker code",
        [SJ_SKIP_OVERLAP] = "overlapping symbols or shared code",
        [SJ_SKIP_COLD_PART] = "cold part of another function",
        [SJ_SKIP_CODE_DIFFERS] = "the code in memory differs from the file",
        [SJ_SKIP_STUB_TOO_FAR] = "no memory for stubs within reach",
        [SJ_SKIP_OUT_OF_TEXT] = "outside the executable section",
        [SJ_SKIP_GO_RUNTIME] = "Go code, whose stacks move",
        [SJ_SKIP_MODULE] = "the whole module is excluded",
        [SJ_SKIP_CROSSES_PAGE] = "a patch would cross a page of a running process",
        [SJ_SKIP_ADDRESS_TAKEN] = "an import whose address is taken",
        [SJ_SKIP_CALLER_MATTERS] = "an import that reads its return address or returns twice",
        [SJ_SKIP_NOT_BOUND] = "an import that cannot be bound in a running program",
        [SJ_SKIP_UNDEFINED] = "an import without a definition",
        [SJ_SKIP_NO_CODE] = "an abstract or native method",
        [SJ_SKIP_CLASS_FULL] = "its class file has no space for probes",
        [SJ_SKIP_VALUES_ELSEWHERE] = "a value of a rule is not in a register",
        [SJ_SKIP_PRECOMPILED] =
            "values of code compiled ahead of time; MONO_ENV_OPTIONS=-O=-aot compiles it anew",
        [SJ_SKIP_FIXED_CLASS] =
            "a hidden Java class from before the attach, which no JVM can change",
    };
    const bool is_known = skip < sizeof(texts) / sizeof(texts[0]) && texts[skip] != NULL;
    return is_known ? texts[skip] : "unknown reason";
}
