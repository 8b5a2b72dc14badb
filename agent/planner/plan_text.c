#include "agent/planner/planner.h"

const char *sj_technique_text(sj_technique technique)
{
    switch (technique) {
    case SJ_TECHNIQUE_NONE:
        return "not hooked";
    case SJ_TECHNIQUE_INLINE:
        return "inline";
    case SJ_TECHNIQUE_SHORT:
        return "short jump";
    case SJ_TECHNIQUE_LEAF_COPY:
        return "leaf copy";
    case SJ_TECHNIQUE_TRAP:
        return "trap";
    case SJ_TECHNIQUE_ENTRY:
        return "entry only";
    case SJ_TECHNIQUE_RETURN_SLOT:
        return "return slot";
    case SJ_TECHNIQUE_GOT:
        return "import table";
    case SJ_TECHNIQUE_RUNTIME:
        return "runtime";
    }
    return "unknown technique";
}

const char *sj_skip_text(sj_skip skip)
{
    switch (skip) {
    case SJ_SKIP_NONE:
        return "hooked";
    case SJ_SKIP_FILTERED:
        return "not selected by the policy";
    case SJ_SKIP_TOO_SHORT:
        return "no room for a jump at the entry";
    case SJ_SKIP_HEAD_IS_TARGET:
        return "a branch lands inside the entry";
    case SJ_SKIP_HEAD_CALL:
        return "a call in the entry cannot be moved";
    case SJ_SKIP_HEAD_LOOP:
        return "the function jumps back to its own entry";
    case SJ_SKIP_TAIL_IS_TARGET:
        return "a branch lands on an exit that is too short for a jump";
    case SJ_SKIP_TAIL_BLOCKED:
        return "the code before an exit cannot be moved";
    case SJ_SKIP_UNRESOLVED_JUMP:
        return "an indirect jump with unknown targets";
    case SJ_SKIP_UNDECODABLE:
        return "bytes that are not instructions";
    case SJ_SKIP_NO_CFI:
        return "no exact unwind information";
    case SJ_SKIP_RUNTIME_SUPPORT:
        return "start files, linker stubs or resolvers";
    case SJ_SKIP_OVERLAP:
        return "overlapping symbols or shared code";
    case SJ_SKIP_COLD_PART:
        return "cold part of another function";
    case SJ_SKIP_CODE_DIFFERS:
        return "the code in memory differs from the file";
    case SJ_SKIP_STUB_TOO_FAR:
        return "no memory for stubs within reach";
    case SJ_SKIP_OUT_OF_TEXT:
        return "outside of the executable section";
    case SJ_SKIP_GO_RUNTIME:
        return "Go code moves its stacks";
    case SJ_SKIP_MODULE:
        return "the whole module is excluded";
    case SJ_SKIP_CROSSES_PAGE:
        return "a patch would cross a page, which is not written into a running process";
    case SJ_SKIP_NOT_BOUND:
        return "an import that cannot be bound in a running program";
    case SJ_SKIP_UNDEFINED:
        return "an import that nothing defines";
    case SJ_SKIP_NO_CODE:
        return "an abstract or native method";
    case SJ_SKIP_CLASS_FULL:
        return "no room for probes in its class file";
    case SJ_SKIP_VALUES_ELSEWHERE:
        return "a value that rules want lies in no register";
    case SJ_SKIP_PRECOMPILED:
        return "values of code compiled ahead of time, not with MONO_ENV_OPTIONS=-O=-aot";
    case SJ_SKIP_FIXED_CLASS:
        return "a hidden Java class that was there before, which no JVM changes";
    case SJ_SKIP_ADDRESS_TAKEN:
        return "an import whose address is taken";
    case SJ_SKIP_CALLER_MATTERS:
        return "an import that looks at its caller or returns twice";
    }
    return "unknown reason";
}
