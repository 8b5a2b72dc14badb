#include "agent/policy/suggest.h"

#include <string.h>

enum { WORD_MAX_BYTES = 32, NEAR_DISTANCE = 2 };

static size_t smaller_of(size_t left, size_t right)
{
    return left < right ? left : right;
}

/* Returns the number of letters to insert, delete or replace to turn one word into the other. */
static size_t edit_distance(const char *left, const char *right)
{
    size_t row[WORD_MAX_BYTES + 1];
    const size_t right_bytes = strlen(right);
    for (size_t j = 0; j <= right_bytes; j++) {
        row[j] = j;
    }
    for (size_t i = 0; left[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < right_bytes; j++) {
            const size_t replaced = diagonal + (left[i] != right[j]);
            diagonal = row[j + 1];
            row[j + 1] = smaller_of(replaced, smaller_of(row[j], diagonal) + 1);
        }
    }
    return row[right_bytes];
}

const char *sj_suggest(const char *word, const char *const *words, size_t count)
{
    const char *nearest = NULL;
    size_t best = NEAR_DISTANCE + 1;
    if (word[0] == '\0' || strlen(word) > WORD_MAX_BYTES) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (strlen(words[i]) > WORD_MAX_BYTES) {
            continue;
        }
        const size_t found = edit_distance(word, words[i]);
        if (found < best && found < strlen(words[i])) {
            best = found;
            nearest = words[i];
        }
    }
    return nearest;
}
