/* The plan: the planner's instructions to the agent for one module, as a file that is mapped.
 *
 * Made outside the program from the module's file (ELF symbols, debug file, map file, .eh_frame,
 * disassembly), cached by build-id, position independent: every address is an offset from the
 * module's load bias ("module offset" = the ELF virtual address). The agent needs no disassembler:
 * a stub is a list of operations, a patch is bytes to compare and a way to write others.
 *
 *   plan_header | function[] | stub[] | operation bytes | patch[] | strings
 *
 * The agent checks every offset against the file's size before it uses any (plan files may be
 * damaged), and compares `original` with the live bytes before it patches: a function where they
 * differ is not hooked, with reason SJ_SKIP_CODE_DIFFERS.
 * All integers little-endian, structures packed by natural alignment. */
#ifndef SJ_AGENT_ABI_PLAN_H
#define SJ_AGENT_ABI_PLAN_H

#include "proto/base/ids.h"
#include "proto/block/value.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SJ_PLAN_MAGIC UINT32_C(0x4e4c504a) /* "JPLN" */

enum { SJ_PLAN_VERSION = 5 };

/* How a function's calls are observed; the order is that of preference. */
typedef enum sj_technique {
    SJ_TECHNIQUE_NONE = 0,      /* not hooked; `skip` says why */
    SJ_TECHNIQUE_INLINE = 1,    /* entry and every exit patched in place */
    SJ_TECHNIQUE_SHORT = 2,     /* as INLINE, some place through a short jump into padding */
    SJ_TECHNIQUE_LEAF_COPY = 3, /* entry jumps to a copy of the function with probes */
    SJ_TECHNIQUE_TRAP = 4,      /* some rare site through int3 */
    SJ_TECHNIQUE_ENTRY = 5,     /* entry only, exit inferred */
    SJ_TECHNIQUE_RETURN_SLOT = 6,
    SJ_TECHNIQUE_GOT = 7,
    SJ_TECHNIQUE_RUNTIME = 8 /* reported by a managed or dynamic runtime */
} sj_technique;

/* Why a function is not hooked. Shown to users by sj_skip_text, stored as text. */
typedef enum sj_skip {
    SJ_SKIP_NONE = 0,
    SJ_SKIP_FILTERED = 1,        /* the policy does not want it */
    SJ_SKIP_TOO_SHORT = 2,       /* no room for a jump at the entry */
    SJ_SKIP_HEAD_IS_TARGET = 3,  /* a branch lands inside the bytes to replace at the entry */
    SJ_SKIP_HEAD_CALL = 4,       /* a call at the entry that cannot be moved */
    SJ_SKIP_HEAD_LOOP = 5,       /* the function jumps back to its own entry */
    SJ_SKIP_TAIL_IS_TARGET = 6,  /* a branch lands on an exit too short for a jump */
    SJ_SKIP_TAIL_BLOCKED = 7,    /* the instruction before an exit cannot be moved */
    SJ_SKIP_UNRESOLVED_JUMP = 8, /* an indirect jump whose targets are not known */
    SJ_SKIP_UNDECODABLE = 9,     /* bytes that are not instructions */
    SJ_SKIP_NO_CFI = 10,         /* no unwind information: hand-written or generated code */
    SJ_SKIP_RUNTIME_SUPPORT =
        11,                     /* start files, PLT, IFUNC resolvers, what the agent itself calls */
    SJ_SKIP_OVERLAP = 12,       /* symbols overlap in a way that leaves the bounds unknown */
    SJ_SKIP_COLD_PART = 13,     /* not a function: belongs to its parent */
    SJ_SKIP_CODE_DIFFERS = 14,  /* (agent) the code in memory is not that of the file */
    SJ_SKIP_STUB_TOO_FAR = 15,  /* (agent) no memory for stubs within 2 GiB */
    SJ_SKIP_OUT_OF_TEXT = 16,   /* symbol outside its executable section */
    SJ_SKIP_GO_RUNTIME = 17,    /* Go code: moving stacks */
    SJ_SKIP_MODULE = 18,        /* the whole module is excluded (loader, libc, vDSO, policy) */
    SJ_SKIP_ADDRESS_TAKEN = 19, /* import: code loads the address from the slot, too */
    SJ_SKIP_CALLER_MATTERS = 20, /* import: it looks at its return address, or returns twice */
    SJ_SKIP_CROSSES_PAGE = 21,   /* (agent) a patch crosses a page in a running process */
    SJ_SKIP_NOT_BOUND = 22,      /* (agent) import of a running program: its target is not known, or
                                  * its target's entry does not check for dispatched calls */
    SJ_SKIP_UNDEFINED = 23,      /* (agent) import that nothing defines when slots are bound */
    SJ_SKIP_NO_CODE = 24,        /* method of a class: abstract or native */
    SJ_SKIP_CLASS_FULL = 25,     /* method of a class: its class file has no room for probes */
    SJ_SKIP_VALUES_ELSEWHERE =
        26, /* (agent) generated code: a value by which rules decide is in no register */
    SJ_SKIP_PRECOMPILED = 27, /* (agent) compiled ahead of time: its values are not known */
    SJ_SKIP_FIXED_CLASS = 28  /* method of a hidden class that was there before the agent */
} sj_skip;

/* Where a function's bounds and name come from. */
typedef enum sj_symbol_source {
    SJ_SYMBOL_SYMTAB = 1,
    SJ_SYMBOL_DYNSYM = 2,
    SJ_SYMBOL_DEBUG_FILE = 3,
    SJ_SYMBOL_MINI_DEBUG_INFO = 4,
    SJ_SYMBOL_MAP_FILE = 5,
    SJ_SYMBOL_EH_FRAME = 6, /* no name: shown as module+0xoffset */
    SJ_SYMBOL_RUNTIME = 7,  /* the tables of a dynamic runtime: an Objective-C method */
    SJ_SYMBOL_IMPORT = 8,   /* a function of another module that this one calls */
    SJ_SYMBOL_GENERATED = 9 /* code that came at run time; `name` is the function's id */
} sj_symbol_source;

typedef struct sj_plan_header {
    uint32_t magic;
    uint16_t version;
    uint16_t machine; /* ELF e_machine */
    uint32_t file_bytes;
    uint32_t crc32c; /* of the file with this field 0 */
    uint8_t build_id_bytes;
    uint8_t build_id[SJ_BUILD_ID_MAX_BYTES]; /* ELF note, else SHA-1-sized content hash */
    uint8_t planner_version[7];              /* cache key besides the build-id */
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

/* Imports come last, by rising offset, and lie outside of the text: their offset is that of the
 * slot that holds the function's address, their size that of the slot. */
typedef struct sj_plan_function {
    uint64_t offset; /* module offset of the entry */
    uint32_t size;   /* bytes, cold parts not included */
    uint32_t name; /* string, as in the symbol table (mangled); 0 when it has none; see GENERATED */
    uint32_t first_patch;
    uint16_t patch_count;
    uint8_t technique; /* sj_technique */
    uint8_t skip;     /* sj_skip; FILTERED beside a technique: could be hooked, is not wanted now */
    uint8_t source;   /* sj_symbol_source */
    uint8_t own_skip; /* what `skip` is when the function is wanted */
    /* Which argument is an object whose first word is recorded in front of each entry, as an
     * SJ_RECORD_VALUE: 1 the first, 2 the second; 0: none. */
    uint8_t receiver;
    /* Places (proto/block/value.h) of what is recorded in front of entries and exits; the rest 0.
     */
    uint8_t values[SJ_PLACES_PER_FUNCTION];
    uint8_t value_shift;  /* arguments in general registers that come before number 1 */
    uint64_t fingerprint; /* of the code of a function without a name, wherever it lies; else 0 */
} sj_plan_function;

/* sj_plan_has_values: something is recorded in front of its entries or exits. Of most functions
 * nothing is, and a start asks for all of them. */
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

/* sj_plan_is_hooked: a function is to be hooked now. */
static inline bool sj_plan_is_hooked(const sj_plan_function *function)
{
    return function->technique != SJ_TECHNIQUE_NONE && function->skip == SJ_SKIP_NONE;
}

/* What the planner counts for the code of one operation, as an upper bound, besides copied bytes:
 * a probe (ENTER, LEAVE), PUSH_RETURN, any jump, and DISPATCH; TAIL_CALL is a probe and a jump. */
enum {
    SJ_PLAN_PROBE_BYTES = 384,
    SJ_PLAN_PUSH_BYTES = 24,
    SJ_PLAN_JUMP_BYTES = 16,
    SJ_PLAN_DISPATCH_BYTES = 32
};

enum { SJ_JUMP_TARGET_BELOW = 72, SJ_JUMP_REGISTERS = 31, SJ_JUMP_STORE_MAX_BYTES = 32 };

/* One piece of generated code. Stubs are emitted in order into one area near the module. */
typedef struct sj_plan_stub {
    uint32_t function;   /* index in function[]; the probes of the stub record its id */
    uint32_t operations; /* offset in the operation bytes */
    uint32_t operations_bytes;
    uint32_t code_bytes; /* upper bound of the code it becomes */
} sj_plan_stub;

/* Operations: one byte of opcode, then operands as written (varints unless said otherwise). */
typedef enum sj_plan_operation {
    SJ_OPERATION_ENTER = 1, /* probe: record an entry of the stub's function */
    SJ_OPERATION_LEAVE = 2, /* probe: record an exit of the stub's function */
    SJ_OPERATION_COPY = 3,  /* n, n bytes: copy as they are */
    /* n, n bytes, p, target (zigzag module offset): copy n bytes, then set the 32-bit field at
     * position p to (target - address of the byte after the n bytes). AArch64: n is 4, p is 0, and
     * the instruction becomes whatever reaches the target */
    SJ_OPERATION_COPY_RELATIVE = 4,
    SJ_OPERATION_JUMP = 5,        /* target (zigzag module offset): jump there */
    SJ_OPERATION_PUSH_RETURN = 6, /* address (zigzag module offset): push it, flags untouched */
    /* cc, s: conditional jump (x86 condition code cc) to stub number s's code */
    SJ_OPERATION_JUMP_IF_STUB = 7,
    SJ_OPERATION_JUMP_STUB = 8, /* s: jump to stub number s's code */
    /* n, n bytes, p, l: copy n bytes; the 32-bit field at p is relative to local label l */
    SJ_OPERATION_COPY_TO_LABEL = 9,
    SJ_OPERATION_LABEL = 10,      /* l: local label l of this stub is here */
    SJ_OPERATION_DISPATCH = 11,   /* record the call of the stub's import, and its return */
    SJ_OPERATION_FREE_FLAGS = 12, /* the probe that follows may change the status flags */
    /* f: record an exit of the stub's function and jump to the start of function number f, whose
     * entry is the same moment; the status flags may change */
    SJ_OPERATION_TAIL_CALL = 13,
    /* d (zigzag): what follows stands for the instruction at this distance from the start of the
     * stub's function, and copies for what follows that; a stub begins with distance 0 */
    SJ_OPERATION_PLACE = 14,
    /* r, n, n bytes, p, target (zigzag module offset): probe: record an exit of the stub's function
     * by the jump that follows, to an address that is known at run time. AArch64: it is in general
     * register r, n and p are 0. x86-64: r is 0, and the bytes are code that stores the address
     * SJ_JUMP_TARGET_BELOW bytes below the stack pointer; p, unless 0, is the position of a field
     * relative to the byte behind it, which is set to lead to the target */
    SJ_OPERATION_JUMP_LEAVE = 15
} sj_plan_operation;

typedef enum sj_patch_kind {
    SJ_PATCH_JUMP32 = 1,   /* 0xE9 rel32 to the stub, rest of `bytes` filled with int3/nop */
    SJ_PATCH_REL32 = 2,    /* `offset` is the 32-bit distance of a jump (the last four bytes of its
                            * instruction; bytes = window = 4), which is retargeted to the stub */
    SJ_PATCH_JUMP8 = 3,    /* 0xEB rel8 to the patch number `via` (a JUMP32 in padding); of one
                            * byte: the byte behind it is that distance already, and stays */
    SJ_PATCH_TRAP = 4,     /* 0xCC; the trap handler continues at the stub */
    SJ_PATCH_BRANCH26 = 5, /* aarch64: one `b` to the stub */
    SJ_PATCH_SLOT = 6      /* an import's slot (8 bytes) holds the stub's address; what it held is
                            * known when the module is relocated only, so `original` is zeros */
} sj_patch_kind;

enum { SJ_PATCH_MAX_BYTES = 16 };

typedef struct sj_plan_patch {
    uint64_t offset;   /* module offset of the first byte written */
    uint32_t stub;     /* stub whose code the patch leads to */
    uint32_t function; /* owner */
    uint32_t via;      /* JUMP8: patch index */
    uint8_t kind;      /* sj_patch_kind */
    uint8_t bytes;     /* number of bytes written */
    uint8_t window;    /* bytes that no thread may be inside of, >= bytes */
    uint8_t reserved;
    uint8_t original[SJ_PATCH_MAX_BYTES]; /* what `window` bytes must be before patching */
} sj_plan_patch;

/* Accessors into a checked plan: borrowed, valid until the plan is unmapped. */
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
