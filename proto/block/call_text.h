/* Formats a call as text: its name with argument values, and its result. function.txt and the
 * command line use it. Texts are cut at their capacity; control characters become spaces.
 * Thread-safe. */
#ifndef SJ_PROTO_BLOCK_CALL_TEXT_H
#define SJ_PROTO_BLOCK_CALL_TEXT_H

#include "proto/block/block.h"

/* The text in function.txt for a result that was not recorded. */
#define SJ_CALL_TEXT_UNRECORDED "-"

enum {
    SJ_CALL_TEXT_NAME = 4096,
    SJ_CALL_TEXT_RESULT = 1024,
    SJ_CALL_TEXT_ARGUMENTS = 64,
    SJ_CALL_TEXT_VALUE = 512
};

/* A text buffer that cuts what exceeds its capacity. */
typedef struct sj_cut_text {
    char *text;
    size_t used, capacity;
} sj_cut_text;

/* Returns an empty text in `capacity` (at least 1) bytes at `text`. */
static inline sj_cut_text sj_cut_text_init(char *text, size_t capacity)
{
    text[0] = '\0';
    return (sj_cut_text){.text = text, .capacity = capacity};
}

void sj_cut_text_add_bytes(sj_cut_text *to, const char *bytes, size_t count);
void sj_cut_text_add(sj_cut_text *to, const char *text);
/* Adds a text in quotes, with a backslash before each quote and backslash. If `is_cut`, adds three
 * dots to show that the text was longer. */
void sj_cut_text_quote(sj_cut_text *to, const char *text, size_t bytes, bool is_cut);

/* The arguments that were recorded, by position from 1. */
typedef struct sj_call_arguments {
    char values[SJ_CALL_TEXT_ARGUMENTS][SJ_CALL_TEXT_VALUE];
    bool is_known[SJ_CALL_TEXT_ARGUMENTS];
    int last; /* the highest position; 0: none */
} sj_call_arguments;

static inline void sj_call_arguments_clear(sj_call_arguments *arguments)
{
    for (int i = 0; i < SJ_CALL_TEXT_ARGUMENTS; i++) {
        arguments->is_known[i] = false;
    }
    arguments->last = 0;
}

/* Writes a value. Numbers have no quotes, strings have quotes, and descriptions made by a runtime
 * have none. */
void sj_call_text_value(const sj_block_value *value, sj_cut_text *to);

/* Writes a function's name with its arguments in brackets. Known values replace the types in the
 * brackets. A name without brackets gets brackets. An argument with neither value nor type becomes
 * "?". */
void sj_call_text_name(const char *name, const sj_call_arguments *arguments, sj_cut_text *to);

/* Returns the number of types in the brackets of a method's name. Returns SJ_VALUE_LAST_POSITION if
 * the number is unknown, because the name has no opening bracket or more than one. */
uint32_t sj_call_text_parameters(const char *name);

/* Writes the text after "ret:": `recorded`, or "-" if no result was recorded (NULL). Writes "!" if
 * an exception or a jump ended the call, followed by the exception's type if `recorded` has it.
 * Writes "?" if the call's end was lost. */
void sj_call_text_result(sj_ending ending, const char *recorded, sj_cut_text *to);

/* Adds the thread at the end of a line: " tid:4711". Adds nothing if `tid` is 0. */
void sj_call_text_thread(int64_t tid, sj_cut_text *to);

/* Adds the recorded errno after a result: " errno:2". */
void sj_call_text_errno(int64_t number, sj_cut_text *to);

#endif
