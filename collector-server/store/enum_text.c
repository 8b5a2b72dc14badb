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
        [SJ_DISARM_BAD_PLAN] = "an invalid patch plan",
        [SJ_DISARM_PROTECT_FAILED] = "code could not be made writable",
        [SJ_DISARM_FORKED_WITHOUT_HANDLER] = "forked past libc",
        [SJ_DISARM_REQUESTED] = "requested",
        [SJ_DISARM_CONFINED] = "confined",
        [SJ_DISARM_NO_ARENA] = "no shared memory for records",
        [SJ_DISARM_LEFT] = "left running",
        [SJ_DISARM_EXECUTED] = "executed a program that is not recorded",
    };
    return WORD_OF(words, reason);
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
