/* Plan: the planner's instructions to the agent for one module, in a file that the agent maps.
 *
 * The planner makes it outside the program from the module's file (ELF symbols, debug file, map
 * file, .eh_frame, disassembly), and caches it by build-id. It is position independent: each
 * address is an offset from the module's load bias ("module offset" = the ELF virtual address). The
 * agent needs no disassembler. A stub is a list of operations; a patch is bytes to compare and a
 * way to replace them.
 *
 *   plan_header | function[] | stub[] | operation bytes | patch[] | strings
 *
 * A plan file may be damaged, so the agent checks every offset against the file's size first. It
 * compares `original` with the bytes in memory before it patches. If they differ, the function is
 * not hooked, with reason SJ_SKIP_CODE_DIFFERS. All integers are little-endian; structures have
 * natural alignment. */
#ifndef SJ_AGENT_ABI_PLAN_H
#define SJ_AGENT_ABI_PLAN_H

#include "proto/base/ids.h"
#include "proto/block/value.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SJ_PLAN_MAGIC UINT32_C(0x4e4c504a) /* "JPLN" */

enum { SJ_PLAN_VERSION = 5 };

/* How a function's calls are observed, the preferred way first. */
typedef enum sj_technique {
    SJ_TECHNIQUE_NONE = 0,   /* not hooked; `skip` says why */
    SJ_TECHNIQUE_INLINE = 1, /* entry and every exit patched in place */
    /* like INLINE, but at least one patch is a short jump to a branch island in padding */
    SJ_TECHNIQUE_SHORT = 2,
    SJ_TECHNIQUE_LEAF_COPY = 3, /* the entry jumps to a copy of the function with probes */
    SJ_TECHNIQUE_TRAP = 4,      /* a rarely executed place has an int3 */
    SJ_TECHNIQUE_ENTRY = 5,     /* only the entry is patched; the exit is inferred */
    SJ_TECHNIQUE_RETURN_SLOT = 6,
    SJ_TECHNIQUE_GOT = 7,
    SJ_TECHNIQUE_RUNTIME = 8 /* reported by a managed or dynamic runtime */
} sj_technique;

/* Reason why a function is not hooked. sj_skip_text (abi/skip_text.h) gives the text that users see
 * and that is stored. */
typedef enum sj_skip {
    SJ_SKIP_NONE = 0,
    SJ_SKIP_FILTERED = 1,        /* the policy does not want it */
    SJ_SKIP_TOO_SHORT = 2,       /* no space for a jump at the entry */
    SJ_SKIP_HEAD_IS_TARGET = 3,  /* a branch targets the bytes to replace at the entry */
    SJ_SKIP_HEAD_CALL = 4,       /* a call at the entry that cannot be moved */
    SJ_SKIP_HEAD_LOOP = 5,       /* the function jumps back to its own entry */
    SJ_SKIP_TAIL_IS_TARGET = 6,  /* a branch targets an exit too short for a jump */
    SJ_SKIP_TAIL_BLOCKED = 7,    /* the instruction before an exit cannot be moved */
    SJ_SKIP_UNRESOLVED_JUMP = 8, /* an indirect jump with unknown targets */
    SJ_SKIP_UNDECODABLE = 9,     /* bytes that are not instructions */
    SJ_SKIP_NO_CFI = 10,         /* no unwind information: hand-written or generated code */
    /* start files, PLT, IFUNC resolvers, functions that the agent calls */
    SJ_SKIP_RUNTIME_SUPPORT = 11,
    SJ_SKIP_OVERLAP = 12,       /* symbols overlap, so the bounds are unknown */
    SJ_SKIP_COLD_PART = 13,     /* not a function: belongs to its parent */
    SJ_SKIP_CODE_DIFFERS = 14,  /* (agent) the code in memory differs from the file */
    SJ_SKIP_STUB_TOO_FAR = 15,  /* (agent) no memory for stubs within 2 GiB */
    SJ_SKIP_OUT_OF_TEXT = 16,   /* symbol outside its executable section */
    SJ_SKIP_GO_RUNTIME = 17,    /* Go code: moving stacks */
    SJ_SKIP_MODULE = 18,        /* the whole module is excluded (loader, libc, vDSO, policy) */
    SJ_SKIP_ADDRESS_TAKEN = 19, /* import: code also loads the address from the slot */
    /* import: the function uses its return address, or returns twice */
    SJ_SKIP_CALLER_MATTERS = 20,
    SJ_SKIP_CROSSES_PAGE = 21, /* (agent) a patch crosses a page in a running process */
    /* (agent) import of a running program: its target is unknown, or the target's entry does not
     * check for dispatched calls */
    SJ_SKIP_NOT_BOUND = 22,
    SJ_SKIP_UNDEFINED = 23,  /* (agent) import without a definition when slots are bound */
    SJ_SKIP_NO_CODE = 24,    /* method of a class: abstract or native */
    SJ_SKIP_CLASS_FULL = 25, /* method of a class: its class file has no space for probes */
    /* (agent) generated code: a value that a rule needs is not in a register */
    SJ_SKIP_VALUES_ELSEWHERE = 26,
    SJ_SKIP_PRECOMPILED = 27, /* (agent) compiled ahead of time, so its values are not known */
    SJ_SKIP_FIXED_CLASS = 28  /* method of a hidden class that existed before the agent */
} sj_skip;

/* Source of a function's bounds and name. */
typedef enum sj_symbol_source {
    SJ_SYMBOL_SYMTAB = 1,
    SJ_SYMBOL_DYNSYM = 2,
    SJ_SYMBOL_DEBUG_FILE = 3,
    SJ_SYMBOL_MINI_DEBUG_INFO = 4,
    SJ_SYMBOL_MAP_FILE = 5,
    SJ_SYMBOL_EH_FRAME = 6, /* no name: shown as module+0xoffset */
    SJ_SYMBOL_RUNTIME = 7,  /* the tables of a dynamic runtime: an Objective-C method */
    SJ_SYMBOL_IMPORT = 8,   /* a function of another module that this module calls */
    SJ_SYMBOL_GENERATED = 9 /* code generated at run time; `name` is the function's id */
} sj_symbol_source;

typedef struct sj_plan_header {
    uint32_t magic;
    uint16_t version;
    uint16_t machine; /* ELF e_machine */
    uint32_t file_bytes;
    uint32_t crc32c; /* checksum of the file, computed with this field as 0 */
    uint8_t build_id_bytes;
    uint8_t build_id[SJ_BUILD_ID_MAX_BYTES]; /* ELF note, else SHA-1-sized content hash */
    uint8_t planner_version[7];              /* part of the cache key */
    uint64_t text_low;                       /* module offsets of the patched range */
    uint64_t text_high;
    uint32_t function_count;
    uint32_t functions_offset; /* sj_plan_function[] */
    uint32_t stub_count;
    uint32_t stubs_offset; /* sj_plan_stub[] */
    uint32_t operations_bytes;
    uint32_t operations_offset;
    uint32_t patch_count;
    uint32_t patches_offset; /* sj_plan_patch[], grouped by function, entries last in each group */
    uint32_t strings_bytes;
    uint32_t strings_offset;  /* NUL-terminated names; offset 0 is the empty name */
    uint32_t stub_code_bytes; /* upper bound of the machine code of all stubs */
    uint32_t path_name;       /* string: where the planner read the module */
} sj_plan_header;

/* Imports come last, sorted by offset, and lie outside the text. An import's `offset` and `size`
 * describe the slot that holds the function's address. */
typedef struct sj_plan_function {
    uint64_t offset; /* module offset of the entry */
    uint32_t size;   /* without cold parts */
    /* String, as in the symbol table (mangled); 0: no name. See SJ_SYMBOL_GENERATED. */
    uint32_t name;
    uint32_t first_patch;
    uint16_t patch_count;
    uint8_t technique; /* sj_technique */
    /* sj_skip; FILTERED with a technique: the function can be hooked but is not wanted now. */
    uint8_t skip;
    uint8_t source;   /* sj_symbol_source */
    uint8_t own_skip; /* the value of `skip` if the function is wanted */
    /* Number of the argument that is an object, whose first word is recorded as an SJ_RECORD_VALUE
     * before each entry: 1 or 2; 0: none. */
    uint8_t receiver;
    /* Places (proto/block/value.h) of the values that are recorded before entries and exits; unused
     * elements are 0. */
    uint8_t values[SJ_PLACES_PER_FUNCTION];
    uint8_t value_shift; /* number of arguments in general registers before argument 1 */
    /* position-independent fingerprint of the code of a function without a name; else 0 */
    uint64_t fingerprint;
} sj_plan_function;

/* True if values are recorded before the entries or exits of the function. Reads whole words,
 * because each program start calls it for all functions, and most have no values. */
static inline bool sj_plan_has_values(const sj_plan_function *function)
{
    uint32_t words[SJ_PLACES_PER_FUNCTION / sizeof(uint32_t)];
    uint32_t any = 0;
    _Static_assert(sizeof(words) == SJ_PLACES_PER_FUNCTION, "whole words");
    memcpy(words, function->values, sizeof(words));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        any |= words[i];
    }
    return any != 0;
}

/* True if the function must be hooked now. */
static inline bool sj_plan_is_hooked(const sj_plan_function *function)
{
    return function->technique != SJ_TECHNIQUE_NONE && function->skip == SJ_SKIP_NONE;
}

/* Upper bounds that the planner uses for the code of one operation, without copied bytes: a probe
 * (ENTER, LEAVE), PUSH_RETURN, any jump, and DISPATCH. TAIL_CALL is a probe and a jump. */
enum {
    SJ_PLAN_PROBE_BYTES = 384,
    SJ_PLAN_PUSH_BYTES = 24,
    SJ_PLAN_JUMP_BYTES = 16,
    SJ_PLAN_DISPATCH_BYTES = 32
};

enum { SJ_JUMP_TARGET_BELOW = 72, SJ_JUMP_REGISTERS = 31, SJ_JUMP_STORE_MAX_BYTES = 32 };

/* One piece of generated code. Stubs are emitted in order into one area near the module. */
typedef struct sj_plan_stub {
    uint32_t function;   /* index in function[]; the stub's probes record its id */
    uint32_t operations; /* offset in the operation bytes */
    uint32_t operations_bytes;
    uint32_t code_bytes; /* upper bound of the machine code */
} sj_plan_stub;

/* Operations: an opcode of one byte, followed by the operands as listed (varints unless stated). */
typedef enum sj_plan_operation {
    SJ_OPERATION_ENTER = 1, /* probe: records an entry of the stub's function */
    SJ_OPERATION_LEAVE = 2, /* probe: records an exit of the stub's function */
    SJ_OPERATION_COPY = 3,  /* n, n bytes: copies the bytes */
    /* n, n bytes, p, target (zigzag module offset): copies n bytes, then sets the 32-bit field at
     * position p to (target - address of the byte after the n bytes). AArch64: n is 4, p is 0, and
     * the instruction is replaced by instructions that reach the target. */
    SJ_OPERATION_COPY_RELATIVE = 4,
    SJ_OPERATION_JUMP = 5,        /* target (zigzag module offset): jumps there */
    SJ_OPERATION_PUSH_RETURN = 6, /* address (zigzag module offset): pushes it, keeps the flags */
    /* cc, s: conditional jump (x86 condition code cc) to the code of stub s */
    SJ_OPERATION_JUMP_IF_STUB = 7,
    SJ_OPERATION_JUMP_STUB = 8, /* s: jumps to the code of stub s */
    /* n, n bytes, p, l: copies n bytes; the 32-bit field at p is relative to local label l */
    SJ_OPERATION_COPY_TO_LABEL = 9,
    SJ_OPERATION_LABEL = 10,      /* l: position of local label l of this stub */
    SJ_OPERATION_DISPATCH = 11,   /* records the call of the stub's import, and its return */
    SJ_OPERATION_FREE_FLAGS = 12, /* the next probe may change the status flags */
    /* f: records an exit of the stub's function and jumps to the start of function f, whose entry
     * has the same time; may change the status flags */
    SJ_OPERATION_TAIL_CALL = 13,
    /* d (zigzag): says to which instruction of the program the code that follows belongs: the one
     * at distance d from the start of the stub's function. After each copied instruction, it is the
     * next instruction of the program. A stub starts with distance 0. */
    SJ_OPERATION_PLACE = 14,
    /* r, n, n bytes, p, target (zigzag module offset): probe: records an exit of the stub's
     * function by the jump that follows, whose target is known at run time. AArch64: general
     * register r holds the target, n and p are 0. x86-64: r is 0, and the bytes are code that
     * stores the target SJ_JUMP_TARGET_BELOW bytes below the stack pointer. If p is not 0, it is
     * the position of a field relative to the byte after it, which is set to reach the target. */
    SJ_OPERATION_JUMP_LEAVE = 15
} sj_plan_operation;

typedef enum sj_patch_kind {
    SJ_PATCH_JUMP32 = 1, /* 0xE9 rel32 to the stub; the rest of `bytes` is int3 or nop */
    /* `offset` is the 32-bit distance of a jump (the last four bytes of its instruction; bytes =
     * window = 4), which is changed to reach the stub. */
    SJ_PATCH_REL32 = 2,
    /* 0xEB rel8 to patch number `via` (a JUMP32 in padding). If the patch has one byte, the byte
     * after it holds that distance already, and stays. */
    SJ_PATCH_JUMP8 = 3,
    SJ_PATCH_TRAP = 4,     /* 0xCC; the trap handler continues at the stub */
    SJ_PATCH_BRANCH26 = 5, /* aarch64: one `b` to the stub */
    /* The stub's address in an import's slot (8 bytes). Its old content is known only after the
     * module is relocated, so `original` is zeros. */
    SJ_PATCH_SLOT = 6
} sj_patch_kind;

enum { SJ_PATCH_MAX_BYTES = 16 };

typedef struct sj_plan_patch {
    uint64_t offset;   /* module offset of the first byte to write */
    uint32_t stub;     /* the stub that the patch jumps to */
    uint32_t function; /* index of the function it belongs to */
    uint32_t via;      /* JUMP8: index of a patch */
    uint8_t kind;      /* sj_patch_kind */
    uint8_t bytes;     /* number of bytes to write */
    /* number of bytes that no thread may be inside while the patch is written, >= bytes */
    uint8_t window;
    uint8_t reserved;
    uint8_t original[SJ_PATCH_MAX_BYTES]; /* content of the `window` bytes before patching */
} sj_plan_patch;

/* Accessors for a checked plan. The results are borrowed until the plan is unmapped. */
static inline const sj_plan_function *sj_plan_functions(const sj_plan_header *header)
{
    return (const void *)((const char *)header + header->functions_offset);
}

static inline const sj_plan_stub *sj_plan_stubs(const sj_plan_header *header)
{
    return (const void *)((const char *)header + header->stubs_offset);
}

static inline const sj_plan_patch *sj_plan_patches(const sj_plan_header *header)
{
    return (const void *)((const char *)header + header->patches_offset);
}

static inline const char *sj_plan_string(const sj_plan_header *header, uint32_t string)
{
    return (const char *)header + header->strings_offset + string;
}

#endif
