/* A call as text: its name with the values of its arguments, and its result, as function.txt has
 * them. Texts are cut at their capacity; control characters become spaces. Any thread. */
#ifndef SJ_PROTO_BLOCK_CALL_TEXT_H
#define SJ_PROTO_BLOCK_CALL_TEXT_H

#include "proto/block/block.h"

/* What function.txt has in the place of a result that was not recorded. */
#define SJ_CALL_TEXT_UNRECORDED "-"

enum {
    SJ_CALL_TEXT_NAME = 4096,
    SJ_CALL_TEXT_RESULT = 1024,
    SJ_CALL_TEXT_ARGUMENTS = 64,
    SJ_CALL_TEXT_VALUE = 512
};

/* A text that is cut at its capacity. */
typedef struct sj_cut_text {
    char *text;
    size_t used, capacity;
} sj_cut_text;

/* sj_cut_text_init makes an empty text in `capacity` (at least 1) bytes at `text`. */
static inline sj_cut_text sj_cut_text_init(char *text, size_t capacity)
{
    text[0] = '\0';
    return (sj_cut_text){.text = text, .capacity = capacity};
}

void sj_cut_text_add_bytes(sj_cut_text *to, const char *bytes, size_t count);
void sj_cut_text_add(sj_cut_text *to, const char *text);
/* sj_cut_text_quote adds a text in quotes; `is_cut`: it goes on, which three dots say. */
void sj_cut_text_quote(sj_cut_text *to, const char *text, size_t bytes, bool is_cut);

/* Arguments that were recorded, by position from 1. */
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

/* sj_call_text_value writes a value: numbers as they are, texts in quotes, what a runtime described
 * without. */
void sj_call_text_value(const sj_block_value *value, sj_cut_text *to);

/* sj_call_text_name writes a function's name with values in the place of the types in its brackets
 * where they are known; one without brackets gets some. */
void sj_call_text_name(const char *name, const sj_call_arguments *arguments, sj_cut_text *to);

/* sj_call_text_parameters returns how many types stand in the brackets of a method's name. It
 * returns SJ_VALUE_LAST_POSITION if the name does not say: it has no brackets, or brackets in
 * brackets. */
uint32_t sj_call_text_parameters(const char *name);

/* sj_call_text_result writes what stands behind "ret:": `recorded`, or - when no result was
 * recorded (NULL). It writes ! when an exception or a jump ended the call, with its type where
 * `recorded` has it, and ? when the call's end was lost. */
void sj_call_text_result(sj_ending ending, const char *recorded, sj_cut_text *to);

/* sj_call_text_thread adds the thread at the end of a line: " tid:4711"; nothing if `tid` is 0. */
void sj_call_text_thread(int64_t tid, sj_cut_text *to);

/* sj_call_text_errno adds what stands behind a result where errno was recorded: " errno:2". */
void sj_call_text_errno(int64_t number, sj_cut_text *to);

#endif
