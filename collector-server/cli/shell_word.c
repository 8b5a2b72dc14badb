#include "collector-server/cli/shell_word.h"

#include <stdio.h>
#include <string.h>

bool sj_shell_is_plain(const char *text, bool may_have_spaces)
{
    static const char plain[] = " abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "/._-+:,@%=";
    return text[0] != '\0' && text[strspn(text, may_have_spaces ? plain : plain + 1)] == '\0';
}

const char *sj_shell_word(const char *text, char *word, size_t capacity)
{
    if (sj_shell_is_plain(text, false)) {
        return text;
    }
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '\'' || (unsigned char)*at < ' ') {
            return NULL;
        }
    }
    const int length = snprintf(word, capacity, "'%s'", text);
    return length > 0 && (size_t)length < capacity ? word : NULL;
}
