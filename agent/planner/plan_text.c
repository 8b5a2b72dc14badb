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
