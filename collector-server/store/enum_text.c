#include "collector-server/store/enum_text.h"

#include "agent/abi/arena.h"
#include "agent/abi/plan.h"
#include "proto/block/block.h"

#include <stddef.h>

/* Returns the text of a number, or "unknown" if the number has none. */
#define WORD_OF(words, number)                                                                     \
    ((number) < sizeof(words) / sizeof((words)[0]) && (words)[number] != NULL ? (words)[number]    \
                                                                              : "unknown")

const char *sj_text_of_technique(uint8_t technique)
{
    static const char *const words[] = {
        [SJ_TECHNIQUE_NONE] = "none",
        [SJ_TECHNIQUE_INLINE] = "inline",
        [SJ_TECHNIQUE_SHORT] = "short",
        [SJ_TECHNIQUE_LEAF_COPY] = "leaf_copy",
        [SJ_TECHNIQUE_TRAP] = "trap",
        [SJ_TECHNIQUE_ENTRY] = "entry",
        [SJ_TECHNIQUE_RETURN_SLOT] = "return_slot",
        [SJ_TECHNIQUE_GOT] = "got",
        [SJ_TECHNIQUE_RUNTIME] = "runtime",
    };
    return WORD_OF(words, technique);
}

const char *sj_text_of_disarming(uint32_t reason)
{
    static const char *const words[] = {
        [SJ_DISARM_NONE] = "",
        [SJ_DISARM_NO_RECORDER] = "no recorder answered",
        [SJ_DISARM_NO_MEMORY] = "out of memory",
        [SJ_DISARM_BAD_PLAN] = "a plan that does not hold",
        [SJ_DISARM_PROTECT_FAILED] = "text may not be written",
        [SJ_DISARM_FORKED_WITHOUT_HANDLER] = "forked without a handler",
        [SJ_DISARM_REQUESTED] = "requested",
        [SJ_DISARM_CONFINED] = "confined",
        [SJ_DISARM_NO_ARENA] = "no room for records",
        [SJ_DISARM_LEFT] = "left running",
        [SJ_DISARM_EXECUTED] = "executed a program that is not recorded",
        [SJ_DISARM_UNREADABLE] = "records not readable",
    };
    return WORD_OF(words, reason);
}

const char *sj_text_of_skip(uint32_t skip)
{
    static const char *const words[] = {
        [SJ_SKIP_NONE] = "",
        [SJ_SKIP_FILTERED] = "filtered by the policy",
        [SJ_SKIP_TOO_SHORT] = "no room for a jump at its head",
        [SJ_SKIP_HEAD_IS_TARGET] = "a branch lands inside its head",
        [SJ_SKIP_HEAD_CALL] = "a call in its head cannot be moved",
        [SJ_SKIP_HEAD_LOOP] = "it jumps back to its own head",
        [SJ_SKIP_TAIL_IS_TARGET] = "a branch lands on an exit too short for a jump",
        [SJ_SKIP_TAIL_BLOCKED] = "the instruction before an exit cannot be moved",
        [SJ_SKIP_UNRESOLVED_JUMP] = "an indirect jump with unknown targets",
        [SJ_SKIP_UNDECODABLE] = "bytes that are not instructions",
        [SJ_SKIP_NO_CFI] = "no unwind information",
        [SJ_SKIP_RUNTIME_SUPPORT] = "runtime support code",
        [SJ_SKIP_OVERLAP] = "symbols overlap, bounds unknown",
        [SJ_SKIP_COLD_PART] = "part of another function",
        [SJ_SKIP_CODE_DIFFERS] = "the code in memory differs from the file",
        [SJ_SKIP_STUB_TOO_FAR] = "no memory for stubs within reach",
        [SJ_SKIP_OUT_OF_TEXT] = "outside the executable section",
        [SJ_SKIP_GO_RUNTIME] = "Go code",
        [SJ_SKIP_MODULE] = "the whole module is left alone",
        [SJ_SKIP_CROSSES_PAGE] = "a patch would cross a page of a running process",
        [SJ_SKIP_ADDRESS_TAKEN] = "an import whose address is taken",
        [SJ_SKIP_NOT_BOUND] = "an import that cannot be bound in a running program",
        [SJ_SKIP_UNDEFINED] = "an import that nothing defines",
        [SJ_SKIP_NO_CODE] = "an abstract or native method",
        [SJ_SKIP_CLASS_FULL] = "no room for probes in its class file",
        [SJ_SKIP_VALUES_ELSEWHERE] = "a value that rules want lies in no register",
        [SJ_SKIP_PRECOMPILED] =
            "values of code compiled ahead of time, not with MONO_ENV_OPTIONS=-O=-aot",
        [SJ_SKIP_FIXED_CLASS] = "a hidden Java class that was there before, which no JVM changes",
        [SJ_SKIP_CALLER_MATTERS] = "an import that looks at its caller or returns twice",
    };
    return WORD_OF(words, skip);
}

const char *sj_text_of_symbol_source(uint8_t source)
{
    static const char *const words[] = {
        [SJ_SYMBOL_SYMTAB] = "symtab",         [SJ_SYMBOL_DYNSYM] = "dynsym",
        [SJ_SYMBOL_DEBUG_FILE] = "debug_file", [SJ_SYMBOL_MINI_DEBUG_INFO] = "mini_debug_info",
        [SJ_SYMBOL_MAP_FILE] = "map_file",     [SJ_SYMBOL_EH_FRAME] = "eh_frame",
        [SJ_SYMBOL_RUNTIME] = "runtime",       [SJ_SYMBOL_IMPORT] = "import",
    };
    return WORD_OF(words, source);
}

const char *sj_text_of_gap_reason(uint32_t reason)
{
    static const char *const words[] = {
        [SJ_GAP_RING_FULL] = "ring_full",
        [SJ_GAP_NO_THREAD_SLOT] = "no_thread_slot",
        [SJ_GAP_TORN] = "torn",
        [SJ_GAP_PAUSED] = "paused",
        [SJ_GAP_SPOOL_FULL] = "spool_full",
        [SJ_GAP_WAITED] = "waited",
        [SJ_GAP_ORPHAN] = "orphan",
    };
    return WORD_OF(words, reason);
}

const char *sj_text_of_value_kind(uint32_t kind)
{
    static const char *const words[SJ_VALUE_KINDS] = {
        [SJ_VALUE_INT] = "int",       [SJ_VALUE_UINT] = "uint",       [SJ_VALUE_LONG] = "long",
        [SJ_VALUE_ULONG] = "ulong",   [SJ_VALUE_CHAR] = "char",       [SJ_VALUE_BOOL] = "bool",
        [SJ_VALUE_HEX] = "hex",       [SJ_VALUE_POINTER] = "pointer", [SJ_VALUE_FLOAT] = "float",
        [SJ_VALUE_DOUBLE] = "double", [SJ_VALUE_STRING] = "string",   [SJ_VALUE_OBJECT] = "object",
        [SJ_VALUE_THROWN] = "thrown", [SJ_VALUE_COST] = "cost",       [SJ_VALUE_ERRNO] = "errno"};
    return WORD_OF(words, kind);
}

const char *sj_text_of_value_note(uint32_t note)
{
    static const char *const words[] = {
        [SJ_VALUE_CUT] = "cut", [SJ_VALUE_UNREADABLE] = "unreadable", [SJ_VALUE_NULL] = "null"};
    return note == SJ_VALUE_WHOLE ? NULL : WORD_OF(words, note);
}
